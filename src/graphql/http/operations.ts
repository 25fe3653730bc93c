/** One operation, or a batch of them one after the other (R26), for one HTTP request. */

import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
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

export interface Operations {
  /** Throws an AppError for what must not run this way. */
  run(request: GraphqlRequest, call: Call): MaybePromise<GraphqlResult>;
  /** The results as JSON, in order; what is wrong with one operation is told in its place. */
  runBatch(requests: readonly unknown[], call: Call): Promise<readonly string[]>;
}

export function createOperations(engine: Engine, config: CostConfig): Operations {
  const run = (request: GraphqlRequest, call: Call): MaybePromise<GraphqlResult> => {
    const prepared = engine.prepare(request);
    if (prepared.kind === 'refused') return { errors: prepared.errors };
    if (prepared.operation === 'subscription') throw notHere();
    if (call.readsOnly && prepared.operation === 'mutation') throw postOnly();
    const result = engine.execute(prepared, call.scope);
    return call.showCost ? andThen(result, (found) => withCost(found, prepared, call)) : result;
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

  const runInPlace = async (request: unknown, call: Call): Promise<GraphqlResult> => {
    try {
      return await run(decodeRequest(request), call);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { errors: [toRefusal(error)] };
    }
  };

  return {
    run,
    async runBatch(requests, call) {
      const results: string[] = [];
      for (const request of requests) {
        results.push(JSON.stringify(await runInPlace(request, call)));
      }
      return results;
    },
  };
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
