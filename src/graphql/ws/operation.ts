/** One operation of a socket, from its first word to its last. */

import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Account } from '../../store/model.ts';
import type { Engine, GraphqlResult, ReadyOperation } from '../engine.ts';
import { toPlainError, toRefusal, type GraphqlError } from '../errors.ts';
import type { Ending, Member, SharedEvent, Subscriptions } from '../subscriptions.ts';
import type { Dialect, Start } from './protocol.ts';
import type { SocketPort } from './socket-port.ts';

export interface OperationDeps {
  readonly engine: Engine;
  readonly subscriptions: Subscriptions;
  /** The account of an `Authorization` value. Asked only where an operation needs it (R23). */
  readonly viewerOf: (authorization: string | undefined) => MaybePromise<Account | undefined>;
  readonly createRequestId: () => string;
  readonly log: Log;
}

/** What an operation tells its connection. */
export interface OperationEvents {
  readonly port: Pick<SocketPort, 'send' | 'deliver'>;
  /** The client's id is free again. */
  readonly finished: () => void;
  /** A query or mutation began (1) or came to its end (-1), also where nobody waits for it. */
  readonly executing: (change: 1 | -1) => void;
  /** Events come faster than the server can execute them. */
  readonly overloaded: (reason: string) => void;
}

export class Operation implements Member {
  readonly id: string;
  readonly dialect: Dialect;
  readonly bytes: number;
  readonly #start: Start;
  readonly #events: OperationEvents;
  /** Beside the rest: an event goes to thousands, and every step on the way to a socket counts. */
  readonly #port: OperationEvents['port'];
  readonly #prefix: string;
  #leave: (() => void) | undefined;
  #stopped = false;

  constructor(start: Start, bytes: number, events: OperationEvents) {
    this.id = start.id;
    this.dialect = start.dialect;
    this.bytes = bytes;
    this.#start = start;
    this.#events = events;
    this.#port = events.port;
    this.#prefix = start.dialect.resultPrefix(start.id);
  }

  run(deps: OperationDeps, authorization: string | undefined): void {
    const prepared = deps.engine.prepare(this.#start.request);
    if (prepared.kind === 'refused') this.#refuse(prepared.errors);
    else if (prepared.operation === 'subscription') this.#subscribe(prepared, deps);
    else this.#execute(prepared, deps, authorization);
  }

  /** From now on nothing of this operation is sent: not an event, not a `complete`. */
  stop(): void {
    this.#stopped = true;
    this.#leave?.();
  }

  next(event: SharedEvent): void {
    this.#port.deliver(event, this.#prefix);
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
        // The door closes the socket itself, with 1001.
        break;
    }
  }

  #subscribe(operation: ReadyOperation, { subscriptions }: OperationDeps): void {
    try {
      this.#leave = subscriptions.join(operation, this);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#refuse([toRefusal(error)]);
    }
  }

  #execute(
    operation: ReadyOperation,
    { engine, createRequestId, viewerOf, log }: OperationDeps,
    authorization: string | undefined,
  ): void {
    const result = engine.execute(operation, {
      requestId: createRequestId(),
      viewer: () => viewerOf(authorization),
      budget: engine.createBudget(),
    });
    if (isPromise(result)) void this.#answerLater(result, log);
    else this.#answer(result);
  }

  /** Owned: whatever happens, it ends here. */
  async #answerLater(result: Promise<GraphqlResult>, log: Log): Promise<void> {
    this.#events.executing(1);
    try {
      this.#answer(await result);
    } catch (error) {
      log('error', 'graphql operation failed', { reason: String(error) });
      this.#fail(error);
    } finally {
      this.#events.executing(-1);
    }
  }

  #answer(result: GraphqlResult): void {
    if (this.#stopped) return;
    // Without `data` it did not run: the operation is refused (GraphQL §7.1).
    if (result.data === undefined) this.#refuse(result.errors ?? []);
    else {
      this.#port.send(`${this.#prefix}${JSON.stringify(result)}}`);
      this.#complete();
    }
  }

  #complete(): void {
    this.#events.finished();
    this.#port.send(this.dialect.complete(this.id));
  }

  /** R31: the operation is answered, the socket stays open. */
  #refuse(errors: readonly GraphqlError[]): void {
    this.#events.finished();
    this.#port.send(this.dialect.error(this.id, errors));
  }

  #fail(error: unknown): void {
    if (error instanceof AppError && error.code === 'overloaded') {
      this.#events.overloaded('Events come faster than they can be sent');
    } else this.#refuse([toPlainError('INTERNAL_SERVER_ERROR', 'Internal server error')]);
  }
}
