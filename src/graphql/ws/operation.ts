/** One operation of a session, from `start` or `subscribe` to `complete`. */

import type { Access } from '../../auth/access.ts';
import type { Config } from '../../config.ts';
import type { Log } from '../../log.ts';
import { type AppError, overloaded } from '../../errors.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { ConnectionMemory, Reservation } from '../../memory-pool.ts';
import type { RequestFacts } from '../context.ts';
import type { GraphqlRequest } from '../documents/documents.ts';
import type { Engine, Operation } from '../engine.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import type { Ending, Subscriber } from '../events/subscriber.ts';
import type { Subscriptions } from '../events/subscriptions.ts';
import type { ClientSocket } from './client-socket.ts';
import {
  type CloseFrame,
  completeMessage,
  type OperationId,
  type OperationProtocol,
  errorMessage,
  resultPrefix,
  type Start,
} from './protocols.ts';

/** Dependencies that all sockets share. */
export interface SocketDeps {
  readonly config: Pick<Config, 'bodyBytesMax'>;
  readonly engine: Engine;
  readonly subscriptions: Subscriptions;
  /** Called only if an operation needs it (R23). */
  readonly viewerOf: Access['viewerOf'];
  readonly createUuid: () => string;
  readonly log: Log;
}

/** The session of an operation. */
interface Owner {
  readonly client: ClientSocket;
  /** The operations that the client can still stop, by key, in the order received. */
  readonly operations: Map<string, SocketOperation>;
  /** Closes the socket. */
  close(frame: CloseFrame): void;
}

/** Approximate memory of an operation that runs, with its id, in bytes. */
export const operationBytes = 1_024;

/** The client is slow, or events are fast (R30). */
const tooFast: CloseFrame = {
  code: 1013,
  reason: 'Events come faster than the client reads them: connect again, and resume',
};
/** As if `connection_init` had been refused: clients connect again, perhaps with another token. */
const revoked: CloseFrame = { code: 4403, reason: 'Forbidden' };

const tooMany = (): AppError =>
  overloaded(
    'Too many operations are under way here: end some, try again later, or connect once more.',
  );

export class SocketOperation implements Subscriber {
  readonly #id: OperationId;
  readonly protocol: OperationProtocol;
  /** Accounts for the operation: more while it waits. */
  #reservation: Reservation;
  /** What is asked for; undefined once it has started. */
  request: GraphqlRequest | undefined;
  readonly #owner: Owner;
  readonly #prefix: string;
  #leave: (() => void) | undefined;
  #isOver = false;

  constructor({ id, protocol, request }: Start, reservation: Reservation, owner: Owner) {
    this.#id = id;
    this.protocol = protocol;
    this.#reservation = reservation;
    this.request = request;
    this.#owner = owner;
    this.#prefix = resultPrefix(protocol, id);
  }

  get memory(): ConnectionMemory {
    return this.#owner.client.memory;
  }

  get waitingBytes(): number {
    return this.request === undefined ? 0 : this.#reservation.bytes;
  }

  /**
   * Resolves when the client has taken the result, or the subscription has begun. Never rejects:
   * every error is sent to the client, and refuses only this operation (R31).
   */
  async run(deps: SocketDeps, viewer: RequestFacts['viewer']): Promise<void> {
    const { request } = this;
    this.request = undefined;
    const { engine, subscriptions } = deps;
    const requestId = deps.createUuid();
    try {
      const operation = await engine.scheduler.run((): MaybePromise<Operation | undefined> => {
        if (this.#isOver || request === undefined) return undefined; // stopped while it waited
        const prepared = engine.prepare(request, requestId);
        if (prepared.type !== 'subscription') return prepared;
        this.#last();
        return andThen(engine.authorize(viewer), (account) => {
          if (!this.#isOver) this.#leave = subscriptions.join(prepared, this, account);
          return undefined;
        });
      });
      if (operation === undefined) return;
      // A mutation must not publish before the earlier subscriptions of this socket listen.
      await subscriptions.ready();
      const { address, memory } = this.#owner.client;
      await this.#execute(operation, deps, { requestId, client: () => address, viewer, memory });
    } catch (error) {
      this.end({ kind: 'refused', errors: engine.refuse(error, requestId) });
    }
  }

  /** From now on nothing is sent for this operation: no event and no `complete`. */
  stop(): void {
    this.#isOver = true;
    this.#reservation.release();
    this.#leave?.();
    const { operations } = this.#owner;
    if (operations.get(String(this.#id)) === this) operations.delete(String(this.#id));
  }

  next(event: SharedEvent): boolean {
    const { client } = this.#owner;
    const isSent = this.#isOver || client.deliver(event, this.#prefix);
    if (!isSent) this.#owner.close(tooFast);
    return isSent;
  }

  taken(): Promise<void> | undefined {
    return this.#owner.client.taken();
  }

  /** After an error of this operation the socket stays open. */
  end(ending: Ending): void {
    const { client } = this.#owner;
    if (ending.kind === 'overflow') this.#owner.close(tooFast);
    else if (ending.kind === 'revoked') this.#owner.close(revoked);
    else if (!this.#isOver) {
      this.stop();
      if (ending.kind === 'complete') client.send(this.toComplete());
      else client.send(errorMessage(this.protocol, this.#id, ending.errors));
    }
  }

  /** The message that ends it, with the id as it came. */
  toComplete(): string {
    return completeMessage(this.#id);
  }

  /** A subscription has no end in sight (R47). Of its message only what is executed is kept. */
  #last(): void {
    this.#reservation.release();
    this.#reservation = this.memory.openLasting();
    if (!this.#reservation.grow(operationBytes + 2 * this.#prefix.length)) throw tooMany();
  }

  async #execute(operation: Operation, { engine }: SocketDeps, facts: RequestFacts): Promise<void> {
    const context = engine.createContext(facts);
    try {
      const { json } = await engine.scheduler.run(() => engine.execute(operation, context));
      if (!this.#isOver) this.#owner.client.send(`${this.#prefix}${json}}`);
      this.end({ kind: 'complete' });
    } finally {
      // The context accounts for the result until the client has taken it.
      await this.#owner.client.taken();
      context.release();
    }
  }
}
