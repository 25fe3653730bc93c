/** One operation of a session, from `start` or `subscribe` to `complete`. */

import type { Access } from '../../auth/access.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import { type GraphqlError, maskedError, toRefusal } from '../errors.ts';
import type { Ending, SharedEvent, Subscriber } from '../events/subscriber.ts';
import type { Subscriptions } from '../events/subscriptions.ts';
import type { ClientSocket } from './client-socket.ts';
import {
  type Closing,
  completeMessage,
  type Dialect,
  errorMessage,
  resultPrefix,
  type Start,
} from './protocols.ts';

/** Dependencies that all sockets share. */
export interface SocketDeps {
  readonly engine: Engine;
  readonly subscriptions: Subscriptions;
  /** Accounts for the memory of operations. */
  readonly pool: Pick<MemoryPool, 'open'>;
  /** Called only if an operation needs it (R23). */
  readonly viewerOf: Access['viewerOf'];
  readonly createUuid: () => string;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly log: Log;
}

/** The session of an operation. */
interface Owner {
  readonly client: ClientSocket;
  /** Called when an operation is over, so that the client may use its id again. */
  forget(id: string): void;
  /** Closes the socket. */
  close(closing: Closing): void;
}

/** R30. */
const behind: Closing = { code: 1013, reason: 'The client does not read what it asked for' };
const overrun: Closing = { code: 1013, reason: 'Events come faster than they can be sent' };

export class SocketOperation implements Subscriber {
  readonly id: string;
  readonly dialect: Dialect;
  /** Accounts for the operation: more while it waits. */
  readonly memory: Reservation;
  readonly #owner: Owner;
  readonly #prefix: string;
  #leave: (() => void) | undefined;
  #isOver = false;

  constructor({ id, dialect }: Start, memory: Reservation, owner: Owner) {
    this.id = id;
    this.dialect = dialect;
    this.memory = memory;
    this.#owner = owner;
    this.#prefix = resultPrefix(dialect, id);
  }

  /**
   * Resolves when the client has taken the result, or the subscription has begun. Never rejects:
   * every error is sent to the client, and refuses only this operation (R31).
   */
  async run(
    operation: ReadyOperation,
    deps: SocketDeps,
    viewer: RequestScope['viewer'],
  ): Promise<void> {
    const { engine, subscriptions, log } = deps;
    try {
      if (operation.operation === 'subscription') {
        await engine.authorize(viewer);
        if (!this.#isOver) this.#leave = subscriptions.join(operation, this);
      } else await this.#execute(operation, deps, viewer);
    } catch (error) {
      if (error instanceof AppError) this.refuse([toRefusal(error)]);
      else {
        log('error', 'graphql operation failed', { reason: String(error) });
        this.refuse([maskedError]);
      }
    }
  }

  /** Sends an error for this operation; the socket stays open. */
  refuse(errors: readonly GraphqlError[]): void {
    this.#sendLast(errorMessage(this.dialect, this.id, errors));
  }

  /** From now on nothing is sent for this operation: no event and no `complete`. */
  stop(): void {
    this.#isOver = true;
    this.memory.release();
    this.#leave?.();
  }

  next(event: SharedEvent): boolean {
    const { client } = this.#owner;
    const isSent = this.#isOver || client.deliver(event, this.#prefix);
    if (!isSent) this.#owner.close(behind);
    return isSent;
  }

  end(ending: Ending): void {
    if (ending.kind === 'overrun') this.#owner.close(overrun);
    else if (ending.kind === 'refused') this.refuse(ending.errors);
    else this.#sendLast(completeMessage(this.id));
  }

  async #execute(
    operation: ReadyOperation,
    { engine, subscriptions, createUuid }: SocketDeps,
    viewer: RequestScope['viewer'],
  ): Promise<void> {
    const budget = engine.createBudget();
    try {
      // A comment that it does not find is an event of the subscriptions before it.
      await subscriptions.running();
      await engine.scheduler.turn();
      const scope = { requestId: createUuid(), viewer, budget };
      const { result, json } = await engine.execute(operation, scope);
      // Without `data` the operation did not run (GraphQL §7.1).
      if (result.data === undefined) this.refuse(result.errors ?? []);
      else {
        if (!this.#isOver) this.#owner.client.send(`${this.#prefix}${json}}`);
        this.#sendLast(completeMessage(this.id));
      }
    } finally {
      // The budget accounts for the result until the client has taken it.
      await this.#owner.client.taken();
      budget.release();
    }
  }

  #sendLast(message: string): void {
    if (this.#isOver) return;
    this.stop();
    this.#owner.forget(this.id);
    this.#owner.client.send(message);
  }
}
