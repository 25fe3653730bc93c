/**
 * The GraphQL door of HTTP: bytes or a query string in, a reply out. It is loaded with the first
 * request that needs it: `graphql` takes longer to load than the rest of the service.
 */

import { createHash } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { Config } from '../config.ts';
import { parseJson } from '../http/json.ts';
import { negotiate } from '../http/media-type.ts';
import { emptyReply, type HttpReply } from '../http/message.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { Budget } from './budget.ts';
import type { RequestScope } from './context.ts';
import {
  createEngine,
  type Engine,
  type EngineDeps,
  type GraphqlRequest,
  type GraphqlResult,
} from './engine.ts';
import { toRefusal } from './errors.ts';
import { decodeQueryString, decodeRequest } from './http/params.ts';
import { batchReply, negotiateAnswer, refusalReply, resultReply } from './http/reply.ts';
import { typeDefs } from './type-defs.ts';

/** What the door needs of an HTTP request, beside its body. */
export interface Asking {
  readonly requestId: string;
  readonly viewer: RequestScope['viewer'];
  /** The header `Accept`. */
  readonly accept: string | undefined;
  /** True where the client wants to see `extensions.cost`. */
  readonly showCost: boolean;
}

export interface GraphqlDoor {
  readonly engine: Engine;
  /** One operation or a batch, as JSON bytes. */
  post(body: Buffer, asking: Asking): MaybePromise<HttpReply>;
  /** The same, parsed already: of a multipart request, with its files in place. */
  postValue(body: unknown, asking: Asking): MaybePromise<HttpReply>;
  /** A query, as a query string. */
  get(query: string, asking: Asking): MaybePromise<HttpReply>;
  /** The schema's text. */
  schema(accept: string | undefined, ifNoneMatch: string | undefined): HttpReply;
}

export interface DoorDeps extends EngineDeps {
  readonly config: EngineDeps['config'] & Pick<Config, 'graphqlBatchMax' | 'graphqlHttpDraft'>;
}

export function createDoor(deps: DoorDeps): GraphqlDoor {
  const { config } = deps;
  const engine = createEngine(deps);
  const schemaTag = `"${createHash('sha256').update(typeDefs).digest('base64url')}"`;

  /** Throws an AppError for what must not run this way. */
  const run = (request: GraphqlRequest, call: Call): MaybePromise<GraphqlResult> => {
    const { scope, asking } = call;
    const prepared = engine.prepare(request);
    if (prepared.kind === 'refused') return { errors: prepared.errors };
    if (prepared.operation === 'subscription') throw notHere();
    if (call.readsOnly && prepared.operation === 'mutation') throw postOnly();
    const result = engine.execute(prepared, scope);
    if (!asking.showCost) return result;
    const { depth, aliases, directives } = prepared.measures;
    return andThen(result, (shown) => {
      const cost = { objects: toCount(scope.budget), depth, aliases, directives };
      return { ...shown, extensions: { cost: { ...cost, max: maxOf(config) } } };
    });
  };

  const single = (request: GraphqlRequest, call: Call): MaybePromise<HttpReply> => {
    const type = negotiateAnswer(call.asking.accept) ?? 'application/json';
    const result = run(request, call);
    const toReply = (found: GraphqlResult): HttpReply =>
      resultReply(found, type, config.graphqlHttpDraft);
    return andThen(result, toReply);
  };

  /** R26: one after the other, in order; what is wrong with one is told in its place. */
  const batch = async (items: readonly unknown[], call: Call): Promise<HttpReply> => {
    const results: string[] = [];
    for (const item of items) {
      let result: MaybePromise<GraphqlResult>;
      try {
        result = run(decodeRequest(item), call);
        if (isPromise(result)) result = await result;
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        result = { errors: [toRefusal(error)] };
      }
      results.push(JSON.stringify(result));
    }
    return batchReply(results, negotiateAnswer(call.asking.accept) ?? 'application/json');
  };

  const toCall = (asking: Asking, readsOnly: boolean): Call => {
    const { requestId, viewer } = asking;
    return { asking, readsOnly, scope: { requestId, viewer, budget: engine.createBudget() } };
  };

  const postValue = (body: unknown, asking: Asking): MaybePromise<HttpReply> => {
    const call = toCall(asking, false);
    if (!Array.isArray(body)) return single(decodeRequest(body), call);
    checkBatch(body, config.graphqlBatchMax);
    return batch(body, call);
  };

  return {
    engine,
    postValue: (body, asking) => answer(asking, () => postValue(body, asking)),
    post: (body, asking) => answer(asking, () => postValue(parseJson(body), asking)),
    get: (query, asking) =>
      answer(asking, () => {
        if (negotiateAnswer(asking.accept) === undefined) throw notAcceptable();
        return single(decodeQueryString(query), toCall(asking, true));
      }),
    schema(accept, ifNoneMatch) {
      const type = negotiate(accept, ['text/plain', 'application/graphql']);
      if (type === undefined) throw notAcceptable();
      const headers = ['Content-Type', `${type}; charset=utf-8`, 'ETag', schemaTag];
      headers.push('Vary', 'Accept', 'Cache-Control', 'no-cache');
      if (matches(ifNoneMatch, schemaTag)) return emptyReply(304, headers.slice(2));
      return { status: 200, headers, body: typeDefs };
    },
  };
}

/** One HTTP request under way. */
interface Call {
  readonly asking: Asking;
  readonly scope: RequestScope;
  /** A GET: it changes nothing (RFC 9110 §9.2.1). */
  readonly readsOnly: boolean;
}

/** What is refused before anything runs has the shape of a GraphQL answer too. */
function answer(asking: Asking, make: () => MaybePromise<HttpReply>): MaybePromise<HttpReply> {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return refusalReply(error, negotiateAnswer(asking.accept) ?? 'application/json');
  }
}

function checkBatch(items: readonly unknown[], max: number): void {
  if (items.length === 0) {
    throw new AppError('invalid_graphql_request', 'A batch has at least one operation.');
  }
  if (items.length > max) {
    throw new AppError('content_too_large', `A batch has at most ${max} operations.`);
  }
}

function toCount({ spent }: Budget): number {
  return Math.ceil(spent);
}

function maxOf(config: DoorDeps['config']): Readonly<Record<string, number>> {
  return {
    objects: config.graphqlObjectsMax,
    depth: config.graphqlDepthMax,
    aliases: config.graphqlAliasesMax,
    directives: config.graphqlDirectivesMax,
  };
}

/** RFC 9110 §13.1.2: weak comparison; `*` stands for any. */
function matches(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(',').map((each) => each.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(tag);
}

function notHere(): AppError {
  return new AppError(
    'invalid_graphql_request',
    'A subscription needs a WebSocket at /graphql (graphql-transport-ws or graphql-ws).',
  );
}

function postOnly(): AppError {
  return new AppError('method_not_allowed', 'A mutation is sent with POST.', { allow: 'POST' });
}

function notAcceptable(): AppError {
  return new AppError('not_acceptable', 'The answer has no media type that the client accepts.');
}
