/** One operation, or a batch of them one after the other (R26), for one HTTP request. */

import { AppError } from '../../errors.ts';
import { type Answer, toAnswer } from '../../http/answer-cache.ts';
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, GraphqlRequest, ReadyOperation } from '../engine.ts';
import type { GraphqlResult } from '../result.ts';
import { toRefusal } from '../errors.ts';
import type { SerializedResult } from '../serialize.ts';
import { Pace, type Scheduler } from '../scheduler.ts';
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

export interface Operations {
  /** Throws an AppError for what must not run this way. */
  run(request: GraphqlRequest, call: Call): MaybePromise<Outcome>;
  /** The results in order; an error of one operation is its result. */
  runBatch(
    requests: readonly unknown[],
    call: Call,
  ): MaybePromise<Pick<Outcome, 'json' | 'repeatable'>>;
}

export function createOperations(engine: Engine): Operations {
  const run = (request: GraphqlRequest, call: Call): MaybePromise<Outcome> => {
    const prepared = engine.prepare(request);
    if (prepared.kind === 'refused') return refused({ errors: prepared.errors });
    const { operation } = prepared;
    if (operation === 'subscription') throw subscriptionOnly();
    checkMethod(prepared, call.readsOnly);
    // Requests that register a persisted query are never answered from the cache.
    const isPure = operation === 'query' && request.extensions === undefined && !call.showCost;
    return andThen(engine.respond(prepared, call.scope, call.showCost), ({ result, json }) => {
      return { result, json, repeatable: isPure && result.errors === undefined };
    });
  };

  const runInPlace = (request: unknown, call: Call): MaybePromise<Outcome> => {
    try {
      const outcome = run(decodeRequest(request), call);
      return isPromise(outcome) ? outcome.catch(refuse) : outcome;
    } catch (error) {
      return refuse(error);
    }
  };

  /** One after the other: at once as long as each answers at once, and all do so quickly. */
  const runFrom = (batch: Batch, call: Call): MaybePromise<Batch> => {
    for (;;) {
      const pause = batch.pace.wait();
      if (pause !== undefined) return pause.then(() => runFrom(batch, call));
      const next = batch.rest.next();
      if (next.done === true) return batch;
      const outcome = runInPlace(next.value, call);
      if (isPromise(outcome)) {
        return outcome.then((came) => {
          add(batch, came);
          return runFrom(batch, call);
        });
      }
      add(batch, outcome);
    }
  };

  return {
    run,
    runBatch: (requests, call) =>
      andThen(runFrom(toBatch(requests, engine.scheduler), call), ({ answers, repeatable }) => ({
        json: toList(answers),
        repeatable,
      })),
  };
}

/** A batch under way: what is still to run, and what came out so far. */
interface Batch {
  readonly rest: IterableIterator<unknown>;
  /** Yields to other requests between two operations. */
  readonly pace: Pace;
  readonly answers: Answer[];
  repeatable: boolean;
}

function toBatch(requests: readonly unknown[], scheduler: Scheduler): Batch {
  return { rest: requests.values(), pace: new Pace(scheduler), answers: [], repeatable: true };
}

function add(batch: Batch, { json, repeatable }: Outcome): void {
  batch.answers.push(json);
  batch.repeatable &&= repeatable;
}

/** A JSON array of what is JSON already. */
function toList(answers: readonly Answer[]): Answer {
  if (answers.every((answer) => typeof answer === 'string')) {
    return toAnswer(`[${answers.join(',')}]`);
  }
  const pieces = answers.flatMap((answer, index) => [
    Buffer.from(index === 0 ? '[' : ','),
    typeof answer === 'string' ? Buffer.from(answer) : answer,
  ]);
  return Buffer.concat([...pieces, Buffer.from(']')]);
}

/** An AppError as the result of one operation of a batch; an internal error is rethrown. */
function refuse(error: unknown): Outcome {
  if (!(error instanceof AppError)) throw error;
  return refused({ errors: [toRefusal(error)] });
}

function refused(result: GraphqlResult): Outcome {
  return { result, json: JSON.stringify(result), repeatable: false };
}

function subscriptionOnly(): AppError {
  return new AppError(
    'invalid_graphql_request',
    'A subscription needs a WebSocket at /graphql, or a request for text/event-stream.',
  );
}

/** A GET changes nothing (RFC 9110 §9.2.1): it must not run a mutation. */
export function checkMethod({ operation }: ReadyOperation, readsOnly: boolean): void {
  if (readsOnly && operation === 'mutation') {
    throw new AppError('method_not_allowed', 'A mutation is sent with POST.', { allow: 'POST' });
  }
}
