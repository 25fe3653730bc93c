/** One operation, or a batch of them one after the other (R26), for one HTTP request. */

import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, GraphqlRequest, GraphqlResult, ReadyOperation } from '../engine.ts';
import { toRefusal } from '../errors.ts';
import { decodeRequest } from './params.ts';

/** One HTTP request under way. */
export interface Call {
  readonly scope: RequestScope;
  /** A GET: it changes nothing (RFC 9110 §9.2.1). */
  readonly readsOnly: boolean;
  /** True where the client wants to see `extensions.cost`. */
  readonly showCost: boolean;
}

export type CostConfig = Pick<
  Config,
  'graphqlObjectsMax' | 'graphqlDepthMax' | 'graphqlAliasesMax' | 'graphqlDirectivesMax'
>;

/** What came out, and whether the same request would bring it again while nothing is written. */
export interface Outcome<T> {
  readonly found: T;
  readonly repeatable: boolean;
}

export interface Operations {
  /** Throws an AppError for what must not run this way. */
  run(request: GraphqlRequest, call: Call): MaybePromise<Outcome<GraphqlResult>>;
  /** The results as JSON, in order; what is wrong with one operation is told in its place. */
  runBatch(requests: readonly unknown[], call: Call): MaybePromise<Outcome<readonly string[]>>;
}

export function createOperations(engine: Engine, config: CostConfig): Operations {
  const run = (request: GraphqlRequest, call: Call): MaybePromise<Outcome<GraphqlResult>> => {
    const prepared = engine.prepare(request);
    if (prepared.kind === 'refused') {
      return { found: { errors: prepared.errors }, repeatable: false };
    }
    const { operation } = prepared;
    if (operation === 'subscription') throw notHere();
    if (call.readsOnly && operation === 'mutation') throw postOnly();
    // A text that is sent to be remembered has to arrive each time.
    const isPure = operation === 'query' && request.extensions === undefined && !call.showCost;
    return andThen(engine.execute(prepared, call.scope), (result) => {
      const found = call.showCost ? withCost(result, prepared, call) : result;
      return { found, repeatable: isPure && result.errors === undefined };
    });
  };

  /** What an operation costs, beside what the whole request may (R26: a batch shares it). */
  const withCost = (result: GraphqlResult, ran: ReadyOperation, call: Call): GraphqlResult => {
    const { depth, aliases, directives } = ran.measures;
    const cost = {
      objects: { spent: Math.ceil(call.scope.budget.spent), max: config.graphqlObjectsMax },
      depth: { spent: depth, max: config.graphqlDepthMax },
      aliases: { spent: aliases, max: config.graphqlAliasesMax },
      directives: { spent: directives, max: config.graphqlDirectivesMax },
    };
    return { ...result, extensions: { cost } };
  };

  const runInPlace = (request: unknown, call: Call): MaybePromise<Outcome<GraphqlResult>> => {
    try {
      return run(decodeRequest(request), call);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { found: { errors: [toRefusal(error)] }, repeatable: false };
    }
  };

  /** One after the other: at once as long as each answers at once. */
  const runFrom = (batch: Batch, call: Call): MaybePromise<Outcome<readonly string[]>> => {
    for (const request of batch.rest) {
      const outcome = runInPlace(request, call);
      if (isPromise(outcome)) {
        return outcome.then((came) => {
          add(batch, came);
          return runFrom(batch, call);
        });
      }
      add(batch, outcome);
    }
    return { found: batch.texts, repeatable: batch.repeatable };
  };

  return {
    run,
    runBatch: (requests, call) =>
      runFrom({ rest: requests.values(), texts: [], repeatable: true }, call),
  };
}

/** A batch under way: what is still to run, and what came out so far. */
interface Batch {
  readonly rest: IterableIterator<unknown>;
  readonly texts: string[];
  repeatable: boolean;
}

function add(batch: Batch, { found, repeatable }: Outcome<GraphqlResult>): void {
  batch.texts.push(JSON.stringify(found));
  batch.repeatable &&= repeatable;
}

function notHere(): AppError {
  return new AppError(
    'invalid_graphql_request',
    'A subscription needs a WebSocket at /graphql, or a request for text/event-stream.',
  );
}

function postOnly(): AppError {
  return new AppError('method_not_allowed', 'A mutation is sent with POST.', { allow: 'POST' });
}
