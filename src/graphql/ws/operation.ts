/** One operation of a session, from `start` or `subscribe` to `complete`. */

import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Account } from '../../store/model.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import { isOverload, toPlainError, toRefusal, type GraphqlError } from '../errors.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import type { Ending, Subscriber } from '../events/subscriber.ts';
import type { Subscriptions } from '../events/subscriptions.ts';
import type { SerializedResult } from '../result.ts';
import type { ClientSocket } from './client-socket.ts';
import {
  type Closing,
  completeMessage,
  type Dialect,
  errorMessage,
  resultPrefix,
  type Start,
} from './protocol.ts';

export interface OperationDeps {
  readonly engine: Engine;
  readonly subscriptions: Subscriptions;
  /** The account of an `Authorization` value. Called only if an operation needs it (R23). */
  readonly viewerOf: (authorization: string | undefined) => MaybePromise<Account | undefined>;
  readonly createRequestId: () => string;
  readonly log: Log;
}

/** Approximate memory of an operation that runs, with its id, in bytes. */
export const operationBytes = 1_024;
/** Approximate memory of a value of the variables, in bytes: an empty object takes the most. */
const valueBytes = 64;
/** The decoder accepts no more (`variableValuesMax`), and each is at least two bytes of JSON. */
const valuesMax = 1_000;
/** R30. */
const behind: Closing = { code: 1013, reason: 'The client does not read what it asked for' };
const overrun: Closing = { code: 1013, reason: 'Events come faster than they can be sent' };

/** Approximate memory of an operation that has not started, whose message had so many bytes. */
export function waitingBytesOf({ variables }: Start['request'], messageBytes: number): number {
  const values = variables === undefined ? 0 : Math.min(valuesMax, messageBytes / 2);
  // A character of a text takes up to two bytes.
  return operationBytes + 2 * messageBytes + values * valueBytes;
}

/**
 * Called when an operation is over, so that the client may use its id again; with `closing` if its
 * socket must close. One function for all operations of a session takes less memory than one each.
 */
export type WhenOver = (operation: SocketOperation, closing?: Closing) => void;

/** What all operations of a session share. */
export interface SharedBySession {
  readonly client: ClientSocket;
  readonly whenOver: WhenOver;
}

export class SocketOperation implements Subscriber {
  readonly id: string;
  readonly dialect: Dialect;
  /** Approximate memory. */
  bytes: number;
  /** Undefined once it runs. */
  #request: Start['request'] | undefined;
  readonly #client: ClientSocket;
  readonly #whenOver: WhenOver;
  readonly #prefix: string;
  #leave: (() => void) | undefined;
  #isStopped = false;

  constructor(start: Start, bytes: number, { client, whenOver }: SharedBySession) {
    this.id = start.id;
    this.dialect = start.dialect;
    this.bytes = bytes;
    this.#request = start.request;
    this.#client = client;
    this.#whenOver = whenOver;
    this.#prefix = resultPrefix(start.dialect, start.id);
  }

  /**
   * For a query or mutation, returns a promise that resolves when the client has taken the result.
   * It never rejects: every error is sent to the client.
   */
  run(deps: OperationDeps, authorization: string | undefined): Promise<void> | undefined {
    const prepared = deps.engine.prepare(this.#request ?? {});
    this.#request = undefined;
    if (prepared.kind === 'refused') this.#refuse(prepared.errors);
    else if (prepared.operation === 'subscription') {
      void this.#subscribe(prepared, deps, authorization);
    } else return this.#execute(prepared, deps, authorization);
    return undefined;
  }

  /** From now on nothing is sent for this operation: no event and no `complete`. */
  stop(): void {
    this.#isStopped = true;
    this.#leave?.();
  }

  next(event: SharedEvent): boolean {
    const isSent = this.#isStopped || this.#client.deliver(event, this.#prefix);
    if (!isSent) this.#whenOver(this, behind);
    return isSent;
  }

  end(ending: Ending): void {
    if (this.#isStopped) return;
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

  /** Never rejects. Joins at once unless the token has to be looked up. */
  async #subscribe(
    operation: ReadyOperation,
    { engine, subscriptions, viewerOf, log }: OperationDeps,
    authorization: string | undefined,
  ): Promise<void> {
    try {
      const authorized = engine.authorize(() => viewerOf(authorization));
      if (isPromise(authorized)) await authorized;
      if (this.#isStopped) return;
      this.#leave = subscriptions.join(operation, this);
    } catch (error) {
      this.#failAndLog(error, log);
    }
  }

  async #execute(
    operation: ReadyOperation,
    { engine, subscriptions, createRequestId, viewerOf, log }: OperationDeps,
    authorization: string | undefined,
  ): Promise<void> {
    const budget = engine.createBudget();
    const viewer = (): MaybePromise<Account | undefined> => viewerOf(authorization);
    const scope = { requestId: createRequestId(), viewer, budget };
    try {
      // A comment that it does not find is an event of the subscriptions before it.
      await subscriptions.running();
      await engine.scheduler.turn();
      this.#sendResult(await engine.execute(operation, scope));
    } catch (error) {
      this.#failAndLog(error, log);
    }
    // The budget accounts for the result until the client has taken it.
    await this.#client.taken();
    budget.release();
  }

  #sendResult({ result, json }: SerializedResult): void {
    if (this.#isStopped) return;
    // Without `data` the operation did not run (GraphQL §7.1).
    if (result.data === undefined) this.#refuse(result.errors ?? []);
    else {
      this.#client.sendResult(json, this.#prefix);
      this.#complete();
    }
  }

  /** Reports an error of a query or mutation; `overloaded` refuses only this operation. */
  #failAndLog(error: unknown, log: Log): void {
    if (this.#isStopped) return;
    if (error instanceof AppError) this.#refuse([toRefusal(error)]);
    else {
      log('error', 'graphql operation failed', { reason: String(error) });
      this.#fail(error);
    }
  }

  #complete(): void {
    this.#whenOver(this);
    this.#client.send(completeMessage(this.id));
  }

  /** R31: sends an error for this operation; the socket stays open. */
  #refuse(errors: readonly GraphqlError[]): void {
    this.#whenOver(this);
    this.#client.send(errorMessage(this.dialect, this.id, errors));
  }

  #fail(error: unknown): void {
    if (isOverload(error)) this.#whenOver(this, overrun);
    else this.#refuse([toPlainError('INTERNAL_SERVER_ERROR', 'Internal server error')]);
  }
}
