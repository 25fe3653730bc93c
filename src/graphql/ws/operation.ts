/** One operation of a socket, from `start` or `subscribe` to `complete`. */

import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { Account } from '../../store/model.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import { isOverload, toPlainError, toRefusal, type GraphqlError } from '../errors.ts';
import type { Ending, Member } from '../events/member.ts';
import type { SerializedResult } from '../serialize.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import type { Subscriptions } from '../events/subscriptions.ts';
import {
  completeMessage,
  type Dialect,
  errorMessage,
  resultPrefix,
  type Start,
} from './protocol.ts';
import type { SocketPort } from './socket-port.ts';

export interface OperationDeps {
  readonly engine: Engine;
  readonly subscriptions: Subscriptions;
  /** The account of an `Authorization` value. Asked only where an operation needs it (R23). */
  readonly viewerOf: (authorization: string | undefined) => MaybePromise<Account | undefined>;
  readonly createRequestId: () => string;
  readonly log: Log;
}

/**
 * The connection, as its operations see it: methods, since functions of each operation would take
 * more memory than the rest of a subscription.
 */
export interface OperationHost {
  readonly port: Omit<SocketPort, 'close'>;
  /** Resolves when less waits to be sent than may wait, or when the socket is gone. */
  room(): Promise<void>;
  /** It keeps so many bytes from now on, in place of those that it kept until now. */
  began(operation: Operation, bytes: number): void;
  /** The client's id is free again. */
  finished(operation: Operation): void;
  /** A query or mutation began (1) or came to its end (-1), also after the client stopped it. */
  executing(change: 1 | -1): void;
  /** Events come faster than the server can execute them, or than the client reads them. */
  overloaded(reason: string): void;
}

/** What an operation takes beside its id, about. */
const operationBytes = 512;
/** Copies of an id: itself, and what its messages begin with, of two bytes a character. */
const idBytes = 6;

/** What an operation keeps beside the message that it came with, about. */
export function keptBytesOf(id: string): number {
  return operationBytes + id.length * idBytes;
}

export class Operation implements Member {
  readonly id: string;
  readonly dialect: Dialect;
  /** What it keeps in memory, about: at first also the message that it came with. */
  bytes: number;
  /** Until it runs. */
  #request: Start['request'] | undefined;
  readonly #host: OperationHost;
  /** Beside the rest: an event goes to thousands, and every step on the way to a socket counts. */
  readonly #port: OperationHost['port'];
  readonly #prefix: string;
  #leave: (() => void) | undefined;
  #stopped = false;

  constructor(start: Start, bytes: number, host: OperationHost) {
    this.id = start.id;
    this.dialect = start.dialect;
    this.bytes = bytes;
    this.#request = start.request;
    this.#host = host;
    this.#port = host.port;
    this.#prefix = resultPrefix(start.dialect, start.id);
  }

  run(deps: OperationDeps, authorization: string | undefined): void {
    const prepared = deps.engine.prepare(this.#request ?? {});
    this.#request = undefined;
    if (prepared.kind === 'refused') this.#refuse(prepared.errors);
    else if (prepared.operation === 'subscription') this.#subscribe(prepared, deps);
    else void this.#execute(prepared, deps, authorization);
  }

  /** From now on nothing of this operation is sent: not an event, not a `complete`. */
  stop(): void {
    this.#stopped = true;
    this.#leave?.();
  }

  next(event: SharedEvent): void {
    this.#port.deliver(event, this.#prefix);
  }

  isBehind(): boolean {
    return this.#port.isBacklogged();
  }

  dismiss(): void {
    this.#host.overloaded('The client does not read what it asked for');
  }

  end(ending: Ending): void {
    if (this.#stopped) return;
    switch (ending.kind) {
      case 'complete':
        this.#complete();
        break;
      case 'refused':
        this.#refuse(ending.errors);
        break;
      case 'failed':
        this.#fail(ending.error);
        break;
      case 'closing':
        // `upgrade.ts` closes the socket itself, with 1001.
        break;
    }
  }

  #subscribe(operation: ReadyOperation, { subscriptions }: OperationDeps): void {
    try {
      this.#leave = subscriptions.join(operation, this);
      this.#host.began(this, keptBytesOf(this.id));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#refuse([toRefusal(error)]);
    }
  }

  /** Owned: whatever happens, it ends here. */
  async #execute(
    operation: ReadyOperation,
    { engine, createRequestId, viewerOf, log }: OperationDeps,
    authorization: string | undefined,
  ): Promise<void> {
    const budget = engine.createBudget();
    const viewer = (): MaybePromise<Account | undefined> => viewerOf(authorization);
    const scope = { requestId: createRequestId(), viewer, budget };
    this.#host.executing(1);
    try {
      const response = await engine.respond(operation, scope);
      // While others wait to be sent, it waits here: the budget holds its place in the pool.
      if (!this.#stopped && this.#port.isBacklogged()) await this.#host.room();
      this.#answer(response);
    } catch (error) {
      this.#failAndLog(error, log);
    } finally {
      budget.release();
      this.#host.executing(-1);
    }
  }

  #answer({ result, json }: SerializedResult): void {
    if (this.#stopped) return;
    // Without `data` it did not run: the operation is refused (GraphQL §7.1).
    if (result.data === undefined) this.#refuse(result.errors ?? []);
    else {
      this.#port.sendResult(json, this.#prefix);
      this.#complete();
    }
  }

  /** Of a query or mutation: where all requests hold too much, it is told so. */
  #failAndLog(error: unknown, log: Log): void {
    if (this.#stopped) return;
    if (error instanceof AppError) this.#refuse([toRefusal(error)]);
    else {
      log('error', 'graphql operation failed', { reason: String(error) });
      this.#fail(error);
    }
  }

  #complete(): void {
    this.#host.finished(this);
    this.#port.send(completeMessage(this.id));
  }

  /** R31: the operation is answered, the socket stays open. */
  #refuse(errors: readonly GraphqlError[]): void {
    this.#host.finished(this);
    this.#port.send(errorMessage(this.dialect, this.id, errors));
  }

  #fail(error: unknown): void {
    if (isOverload(error)) {
      this.#host.overloaded('Events come faster than they can be sent');
    } else this.#refuse([toPlainError('INTERNAL_SERVER_ERROR', 'Internal server error')]);
  }
}
