/**
 * The GraphQL door of HTTP: bytes or a query string in, a reply out. It is loaded with the first
 * request that needs it: `graphql` takes longer to load than the rest of the service.
 */

import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import { parseJson } from '../http/json.ts';
import type { HttpReply, HttpRequest } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { RequestScope } from './context.ts';
import { createEngine, type Engine, type EngineDeps } from './engine.ts';
import { type MultipartDeps, runMultipart } from './http/multipart.ts';
import { type Call, createOperations } from './http/operations.ts';
import { decodeQueryString, decodeRequest } from './http/params.ts';
import {
  type AnswerType,
  batchReply,
  negotiateAnswer,
  refusalReply,
  resultReply,
} from './http/reply.ts';
import { createSchemaFile, type SchemaFile } from './http/schema-file.ts';
import {
  createEventStreams,
  type EventStreams,
  type EventStreamsDeps,
  wantsEvents,
} from './http/sse.ts';
import { createSubscriptions, type Subscriptions } from './subscriptions.ts';
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
  /** Shared by sockets and event streams; whoever stops the service closes both. */
  readonly subscriptions: Subscriptions;
  readonly streams: EventStreams;
  readonly schemaFile: SchemaFile;
  /** One operation or a batch, as JSON bytes. */
  post(body: Buffer, asking: Asking): MaybePromise<HttpReply>;
  /** The same with files, as a multipart request. */
  postMultipart(request: HttpRequest, asking: Asking): Promise<HttpReply>;
  /** A query, as a query string. */
  get(query: string, asking: Asking): MaybePromise<HttpReply>;
}

export interface DoorDeps extends EngineDeps, Omit<MultipartDeps, 'engine' | 'config'> {
  readonly config: EngineDeps['config'] &
    MultipartDeps['config'] &
    EventStreamsDeps['config'] &
    Pick<Config, 'graphqlBatchMax' | 'graphqlHttpDraft' | 'subscriptionsDistinctMax'>;
}

export function createDoor(deps: DoorDeps): GraphqlDoor {
  const { graphqlBatchMax, graphqlHttpDraft } = deps.config;
  const engine = createEngine(deps);
  const operations = createOperations(engine, deps.config);
  const subscriptions = createSubscriptions({
    engine,
    distinctMax: deps.config.subscriptionsDistinctMax,
    log: deps.log,
  });
  const streams = createEventStreams({ engine, subscriptions, config: deps.config });

  const toCall = ({ requestId, viewer, showCost }: Asking, readsOnly: boolean): Call => {
    return { scope: { requestId, viewer, budget: engine.createBudget() }, readsOnly, showCost };
  };
  const runValue = (body: unknown, asking: Asking): MaybePromise<HttpReply> => {
    const call = toCall(asking, false);
    const type = typeFor(asking);
    if (Array.isArray(body)) {
      checkBatch(body, graphqlBatchMax);
      return andThen(operations.runBatch(body, call), (texts) => batchReply(texts, type));
    }
    const request = decodeRequest(body);
    if (wantsEvents(asking.accept)) return streams.run(request, call.scope, false);
    const result = operations.run(request, call);
    return andThen(result, (found) => resultReply(found, type, graphqlHttpDraft));
  };

  return {
    engine,
    subscriptions,
    streams,
    schemaFile: createSchemaFile(typeDefs),
    post: (body, asking) => refusable(asking, () => runValue(parseJson(body), asking)),
    async postMultipart(request, asking) {
      try {
        const multipart = { ...deps, engine };
        return await runMultipart(request, multipart, (body) => runValue(body, asking));
      } catch (error) {
        return toRefusalReply(error, asking);
      }
    },
    get: (query, asking) =>
      refusable(asking, () => {
        const call = toCall(asking, true);
        const request = decodeQueryString(query);
        if (wantsEvents(asking.accept)) return streams.run(request, call.scope, true);
        const type = negotiateAnswer(asking.accept);
        if (type === undefined) throw notAcceptable();
        const result = operations.run(request, call);
        return andThen(result, (found) => resultReply(found, type, graphqlHttpDraft));
      }),
  };
}

/** A POST never fails for its `Accept` (R6). */
function typeFor({ accept }: Asking): AnswerType {
  return negotiateAnswer(accept) ?? 'application/json';
}

/** What is refused before anything runs has the shape of a GraphQL answer too. */
function refusable(asking: Asking, make: () => MaybePromise<HttpReply>): MaybePromise<HttpReply> {
  try {
    return make();
  } catch (error) {
    return toRefusalReply(error, asking);
  }
}

function toRefusalReply(error: unknown, asking: Asking): HttpReply {
  if (!(error instanceof AppError)) throw error;
  return refusalReply(error, typeFor(asking));
}

function checkBatch(requests: readonly unknown[], max: number): void {
  if (requests.length === 0) {
    throw new AppError('invalid_graphql_request', 'A batch has at least one operation.');
  }
  if (requests.length > max) {
    throw new AppError('content_too_large', `A batch has at most ${max} operations.`);
  }
}

function notAcceptable(): AppError {
  return new AppError('not_acceptable', 'The answer has no media type that the client accepts.');
}
