/** Runs one operation, or a batch of operations in sequence (R26), for one HTTP request. */

import { AppError } from '../../errors.ts';
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, GraphqlRequest, Prepared } from '../engine.ts';
import { toRefusal } from '../errors.ts';
import { type SerializedResult, toSerialized } from '../result.ts';

/** The execution options of one HTTP request. */
export interface Call {
  readonly scope: RequestScope;
  /** True for GET, which must not change anything (RFC 9110 §9.2.1). */
  readonly readsOnly: boolean;
}

/** What to send, and whether it stays the same for equal requests until something is written. */
export interface Outcome {
  readonly json: string;
  /** Absent for a batch, which has several. */
  readonly result?: SerializedResult['result'];
  readonly isRepeatable: boolean;
}

/** Throws an AppError for an operation that must not run over this method. */
export function runOperation(
  engine: Engine,
  request: GraphqlRequest,
  call: Call,
): MaybePromise<Outcome> {
  const prepared = engine.prepare(request);
  const isQuery = prepared.kind === 'ready' && prepared.operation === 'query';
  // Requests that register a persisted query are never answered from the cache.
  const isPure = isQuery && request.documentHash === undefined;
  return andThen(runPrepared(engine, prepared, call), ({ result, json }) => {
    return { result, json, isRepeatable: isPure && result.errors === undefined };
  });
}

/** Like `runOperation`, for a prepared request. Throws `overloaded` too. */
export function runPrepared(
  engine: Pick<Engine, 'execute'>,
  prepared: Prepared,
  { scope, readsOnly }: Call,
): MaybePromise<SerializedResult> {
  if (prepared.kind === 'refused') return toSerialized({ errors: prepared.errors });
  if (prepared.operation === 'subscription') {
    throw new AppError(
      'invalid_graphql_request',
      'A subscription needs a WebSocket at /graphql, or a request for text/event-stream.',
    );
  }
  if (prepared.operation === 'mutation' && readsOnly) {
    throw new AppError('method_not_allowed', 'A mutation is sent with POST.', { allow: 'POST' });
  }
  return andThen(engine.execute(prepared, scope), (serialized) => {
    if (serialized.overload !== undefined) throw serialized.overload;
    return serialized;
  });
}

/** Returns the results in order. An error of one operation is part of its result. */
export async function runBatch(
  engine: Engine,
  requests: readonly (GraphqlRequest | AppError)[],
  call: Call,
): Promise<Outcome> {
  const texts: string[] = [];
  let isRepeatable = true;
  for (const request of requests) {
    const turn = engine.scheduler.turn();
    if (turn !== undefined) await turn;
    const running = runInBatch(engine, request, call);
    const outcome = isPromise(running) ? await running : running;
    texts.push(outcome.json);
    isRepeatable &&= outcome.isRepeatable;
  }
  return { json: `[${texts.join(',')}]`, isRepeatable };
}

function runInBatch(
  engine: Engine,
  request: GraphqlRequest | AppError,
  call: Call,
): MaybePromise<Outcome> {
  try {
    if (request instanceof AppError) throw request;
    const running = runOperation(engine, request, call);
    return isPromise(running) ? running.catch(toRefused) : running;
  } catch (error) {
    return toRefused(error);
  }
}

function toRefused(error: unknown): Outcome {
  if (!(error instanceof AppError)) throw error;
  const json = JSON.stringify({ errors: [toRefusal(error)] });
  return { json, isRepeatable: false };
}
