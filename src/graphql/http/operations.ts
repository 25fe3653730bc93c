/** Runs one operation, or a batch of operations in sequence (R26), for one HTTP request. */

import { AppError } from '../../errors.ts';
import { type JsonBody, toBytes } from '../../http/response-cache.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, GraphqlRequest, Prepared } from '../engine.ts';
import { toRefusal } from '../errors.ts';
import type { SerializedResult } from '../serialize.ts';
import { Pace } from '../../scheduler.ts';
import { decodeRequest } from './params.ts';

/** The execution options of one HTTP request. */
export interface Call {
  readonly scope: RequestScope;
  /** True for GET, which must not change anything (RFC 9110 §9.2.1). */
  readonly readsOnly: boolean;
  /** True if the client asked for `extensions.cost`. */
  readonly showCost: boolean;
}

/** What to send, and whether it stays the same for equal requests until something is written. */
export interface Outcome extends Pick<SerializedResult, 'json'> {
  /** Absent for a batch, which has several. */
  readonly result?: SerializedResult['result'];
  readonly repeatable: boolean;
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
  const isPure = isQuery && request.extensions === undefined;
  return andThen(runPrepared(engine, prepared, call), ({ result, json }) => {
    return { result, json, repeatable: isPure && result.errors === undefined };
  });
}

/** Like `runOperation`, for a prepared request. */
export function runPrepared(
  engine: Pick<Engine, 'execute'>,
  prepared: Prepared,
  { scope, readsOnly, showCost }: Call,
): MaybePromise<SerializedResult> {
  if (prepared.kind === 'refused') return refused({ errors: prepared.errors });
  if (prepared.operation === 'subscription') {
    throw new AppError(
      'invalid_graphql_request',
      'A subscription needs a WebSocket at /graphql, or a request for text/event-stream.',
    );
  }
  if (prepared.operation === 'mutation' && readsOnly) {
    throw new AppError('method_not_allowed', 'A mutation is sent with POST.', { allow: 'POST' });
  }
  return engine.execute(prepared, scope, showCost);
}

/** Returns the results in order. An error of one operation is part of its result. */
export async function runBatch(
  engine: Engine,
  requests: readonly unknown[],
  call: Call,
): Promise<Outcome> {
  const pace = new Pace(engine.scheduler);
  const outcomes: Outcome[] = [];
  for (const request of requests) {
    await pace.wait();
    outcomes.push(await runInBatch(engine, request, call));
  }
  return {
    json: toList(outcomes.map(({ json }) => json)),
    repeatable: outcomes.every(({ repeatable }) => repeatable),
  };
}

async function runInBatch(engine: Engine, request: unknown, call: Call): Promise<Outcome> {
  try {
    return await runOperation(engine, decodeRequest(request), call);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ...refused({ errors: [toRefusal(error)] }), repeatable: false };
  }
}

/** Joins JSON texts to a JSON array. */
function toList(items: readonly JsonBody[]): Buffer {
  const pieces = items.flatMap((json, index) => [index === 0 ? '[' : ',', json]);
  return Buffer.concat([...pieces, ']'].map(toBytes));
}

function refused(result: SerializedResult['result']): SerializedResult {
  return { result, json: JSON.stringify(result) };
}
