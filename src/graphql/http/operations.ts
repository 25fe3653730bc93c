/** One operation, or a batch of them one after the other (R26), for one HTTP request. */

import { AppError } from '../../errors.ts';
import { type Answer, toBytes } from '../../http/answer-cache.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, GraphqlRequest, Prepared } from '../engine.ts';
import { toRefusal } from '../errors.ts';
import type { SerializedResult } from '../serialize.ts';
import { Pace } from '../../scheduler.ts';
import { decodeRequest } from './params.ts';

/** One HTTP request under way. */
export interface Call {
  readonly scope: RequestScope;
  /** A GET: it changes nothing (RFC 9110 §9.2.1). */
  readonly readsOnly: boolean;
  /** True where the client wants to see `extensions.cost`. */
  readonly showCost: boolean;
}

/** A result, and whether an equal request gets the same one until something is written. */
export interface Outcome extends SerializedResult {
  readonly repeatable: boolean;
}

/** Throws an AppError for what must not run this way. */
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

/** The same for a request that was prepared. */
export function runPrepared(
  engine: Pick<Engine, 'respond'>,
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
  return engine.respond(prepared, scope, showCost);
}

/** The results in order; an error of one operation is its result. */
export async function runBatch(
  engine: Engine,
  requests: readonly unknown[],
  call: Call,
): Promise<Pick<Outcome, 'json' | 'repeatable'>> {
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

/** A JSON array of what is JSON already. */
function toList(items: readonly Answer[]): Buffer {
  const pieces = items.flatMap((json, index) => [index === 0 ? '[' : ',', json]);
  return Buffer.concat([...pieces, ']'].map(toBytes));
}

function refused(result: SerializedResult['result']): SerializedResult {
  return { result, json: JSON.stringify(result) };
}
