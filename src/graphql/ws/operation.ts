/** One operation of a socket, from `start` or `subscribe` to `complete`. */

import { AppError } from '../../errors.ts';
import { toJsonBody } from '../../http/response-cache.ts';
import type { Log } from '../../log.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { Account } from '../../store/model.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import { isOverload, toPlainError, toRefusal, type GraphqlError } from '../errors.ts';
import type { Ending, Member } from '../events/member.ts';
import type { SerializedResult } from '../result.ts';
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
  /** The account of an `Authorization` value. Called only if an operation needs it (R23). */
  readonly viewerOf: (authorization: string | undefined) => MaybePromise<Account | undefined>;
  readonly createRequestId: () => string;
  readonly log: Log;
}

/**
 * The connection, as its operations use it. Methods of one object take less memory than functions
 * for each operation.
 */
export interface OperationHost {
  readonly port: Omit<SocketPort, 'close'>;
  /** Resolves when the queue of the socket is below its limit, or the socket is closed. */
  room(): Promise<void>;
  /** The operation has started, and keeps this many bytes from now on. */
  began(operation: Operation, bytes: number): void;
  /** The operation has ended, so the client may use its id again. */
  finished(operation: Operation): void;
  /** A query or mutation started (1) or ended (-1), even if the client stopped it before. */
  executing(change: 1 | -1): void;
  /** Closes the socket: events come faster than they can be executed. */
  overloaded(reason: string): void;
}

/** Approximate memory of an operation that runs, with its id, in bytes. */
export const operationBytes = 1_024;
/** Approximate memory of a value of the variables, in bytes: an empty object takes the most. */
const valueBytes = 64;
/** The decoder accepts no more (`variableValuesMax`), and each is at least two bytes of JSON. */
const valuesMax = 1_000;

/** Approximate memory of an operation that has not started, whose message had so many bytes. */
export function waitingBytesOf({ variables }: Start['request'], messageBytes: number): number {
  const values = variables === undefined ? 0 : Math.min(valuesMax, messageBytes / 2);
  // A character of a text takes up to two bytes.
  return operationBytes + 2 * messageBytes + values * valueBytes;
}

export class Operation implements Member {
  readonly id: string;
  readonly dialect: Dialect;
  /** Approximate memory in bytes; before it runs, with the message that started it. */
  bytes: number;
  /** Undefined once it runs. */
  #request: Start['request'] | undefined;
  readonly #host: OperationHost;
  /** A copy of `host.port`, because each event is delivered to thousands of operations. */
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

  /** From now on nothing is sent for this operation: no event and no `complete`. */
  stop(): void {
    this.#stopped = true;
    this.#leave?.();
  }

  next(event: SharedEvent): void {
    if (!this.#stopped) this.#port.deliver(event, this.#prefix);
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
        // `upgrade.ts` closes the socket, with 1001.
        break;
    }
  }

  #subscribe(operation: ReadyOperation, { subscriptions }: OperationDeps): void {
    try {
      this.#leave = subscriptions.join(operation, this);
      this.#host.began(this, operationBytes);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#refuse([toRefusal(error)]);
    }
  }

  /** Never rejects: every error is sent to the client. */
  async #execute(
    operation: ReadyOperation,
    { engine, subscriptions, createRequestId, viewerOf, log }: OperationDeps,
    authorization: string | undefined,
  ): Promise<void> {
    const budget = engine.createBudget();
    const viewer = (): MaybePromise<Account | undefined> => viewerOf(authorization);
    const scope = { requestId: createRequestId(), viewer, budget };
    this.#host.executing(1);
    try {
      // A comment that it does not find is an event of the subscriptions before it.
      await subscriptions.running();
      await engine.scheduler.turn();
      const result = await engine.execute(operation, scope);
      // Waits while earlier messages are queued; the budget accounts for the result meanwhile.
      if (!this.#stopped && this.#port.isBacklogged()) await this.#host.room();
      this.#sendResult(result);
    } catch (error) {
      this.#failAndLog(error, log);
    } finally {
      budget.release();
      this.#host.executing(-1);
    }
  }

  #sendResult({ result, json }: SerializedResult): void {
    if (this.#stopped) return;
    // Without `data` the operation did not run (GraphQL §7.1).
    if (result.data === undefined) this.#refuse(result.errors ?? []);
    else {
      this.#port.sendResult(toJsonBody(json), this.#prefix);
      this.#complete();
    }
  }

  /** Reports an error of a query or mutation; `overloaded` refuses only this operation. */
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

  /** R31: sends an error for this operation; the socket stays open. */
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
