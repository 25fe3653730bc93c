/**
 * The GraphQL endpoint: creates its parts, and answers requests over HTTP. It is loaded by the
 * first request that needs it, because `graphql` and `ws` take longer to load than the rest of the
 * service.
 */

import { type Access, findBefore } from '../auth/access.ts';
import { AppError } from '../errors.ts';
import { parseJson } from '../http/json.ts';
import type { HttpRequest, HttpResponse } from '../http/message.ts';
import type { ConnectionMemory } from '../memory-pool.ts';
import type { Observer } from '../http/server/observe.ts';
import { andThen } from '../maybe-promise.ts';
import type { TrackedRecords } from '../records/tracked-records.ts';
import type { MadeResponse, ResponseCache } from '../records/response-cache.ts';
import type { RequestContext, RequestFacts } from './context.ts';
import type { GraphqlRequest } from './documents/documents.ts';
import {
  createEngine,
  type Engine,
  type EngineDeps,
  type Executed,
  type Operation,
} from './engine.ts';
import { RequestError, toErrors } from './errors.ts';
import { createSubscriptions } from './events/subscriptions.ts';
import {
  decodeBody,
  negotiateType,
  parseQueryString,
  refusalResponse,
  type Requests,
  resultResponse,
  wantsEvents,
} from './http/messages.ts';
import { type MultipartDeps, readOperations } from './http/multipart.ts';
import { createEventStreams, type EventStreams, toEvents } from './http/sse.ts';
import { createWebSocketEndpoint } from './ws/upgrade.ts';

export interface EndpointDeps extends EngineDeps, Omit<HttpDeps, 'engine' | 'streams'> {
  readonly observer: Observer;
  readonly isCurrent: Access['isCurrent'];
}

export type GraphqlEndpoint = ReturnType<typeof createEndpoint>;

/** Different subscriptions: each is executed once per event; a thousand take about 50 ms. */
const distinctMax = 1_000;

export function createEndpoint(deps: EndpointDeps) {
  const { config } = deps;
  const engine = createEngine(deps);
  const { ready } = deps.store.comments;
  const subscriptions = createSubscriptions({ ...deps, engine, distinctMax, ready });
  const streams = createEventStreams(subscriptions, config);
  const sockets = createWebSocketEndpoint({
    ...deps,
    engine,
    subscriptions,
    now: () => performance.now(),
  });

  return {
    ...createHttpEndpoint({ ...deps, engine, streams }),
    upgrade: sockets.upgrade,
    /** The numbers of open connections and subscriptions. */
    count: () => ({
      webSockets: sockets.size,
      eventStreams: streams.size,
      subscriptions: subscriptions.count().subscribers,
    }),
    /** Ends event streams, and WebSockets with 1001. Resolves when the sockets are closed. */
    close(): Promise<void> {
      streams.close();
      subscriptions.close();
      return sockets.close();
    },
  };
}

interface HttpDeps
  extends
    MultipartDeps,
    Pick<EngineDeps, 'log' | 'metrics'>,
    Pick<Access, 'viewerOf' | 'readsNeedToken'> {
  readonly engine: Engine;
  readonly streams: EventStreams;
  readonly responses: ResponseCache;
}

/** Responses to longer bodies are not cached: the lookup costs more than it is likely to save. */
const keyBytesMax = 65_536;

export function createHttpEndpoint(deps: HttpDeps) {
  const run = createRunner(deps);
  return {
    /** Runs one operation or a batch, given as JSON. */
    async post(request: HttpRequest): Promise<HttpResponse> {
      const body = await request.readBody(deps.config.bodyBytesMax);
      const key =
        body.length <= keyBytesMax
          ? `POST ${request.header('accept') ?? ''}\n${body.toString('latin1')}`
          : undefined;
      return run({ request, read: () => decodeBody(parseJson(body)), key });
    },
    /** Runs one operation or a batch with files, given as a multipart request. */
    async postMultipart(request: HttpRequest): Promise<HttpResponse> {
      const upload = deps.uploads.begin();
      try {
        const read = await readOperations(request, upload, deps);
        return await run({ request, read });
      } catch (error) {
        return refusalResponse(error, negotiateType(request));
      } finally {
        await upload.close();
      }
    },
    /** Runs a query, given as a query string. */
    async get(request: HttpRequest): Promise<HttpResponse> {
      const response = await run({ request, read: () => decodeQuery(request) });
      // The response to a GET can be cached, and depends on `Accept`.
      return { ...response, headers: [...response.headers, 'Vary', 'Accept'] };
    },
  };
}

interface Asked {
  readonly request: HttpRequest;
  /** Decodes the request when its turn has come: until then it waits as bytes. */
  readonly read: () => Requests;
  /** Requests with equal keys have equal responses until something is written. */
  readonly key?: string | undefined;
}

/** Runs requests. */
function createRunner(deps: HttpDeps) {
  const { engine, responses, readsNeedToken } = deps;

  const runNow = async (
    { request, read }: Asked,
    viewer: RequestFacts['viewer'],
    records: TrackedRecords,
  ): Promise<MadeResponse> => {
    const type = negotiateType(request);
    const readsOnly = request.method !== 'POST';
    const context = engine.createContext({ requestId: request.id, viewer, records, readsOnly });
    try {
      const requests = read();
      const isOne = !isBatch(requests);
      if (isOne && wantsEvents(request)) {
        const { memory } = request;
        const response = await respondWithEvents(deps, requests, { context, memory });
        return { ...response, isSingle: true };
      }
      const { json, isRepeatable } = isOne
        ? await runOperation(engine, engine.prepare(requests, request.id), context)
        : await runBatch(deps, requests, context);
      return { ...resultResponse(json, type), isSingle: !isRepeatable };
    } catch (error) {
      return { ...refusalResponse(error, type), isSingle: true };
    } finally {
      context.release();
    }
  };
  return async (asked: Asked): Promise<HttpResponse> => {
    const findViewer = () => deps.viewerOf(asked.request);
    const viewer = readsNeedToken ? await findBefore(findViewer) : findViewer;
    // R36: without a token, a request that is in the cache is refused like any other.
    const key = readsNeedToken && !isKnown(viewer) ? undefined : asked.key;
    let isOwn = false;
    const make = (records: TrackedRecords): Promise<MadeResponse> => {
      isOwn = true;
      return runNow(asked, viewer, records);
    };
    const response = await responses.respond(key, make, { runInTurn: engine.scheduler.run });
    if (!isOwn) deps.metrics?.responseFromCache();
    return response;
  };
}

function isKnown(viewer: RequestFacts['viewer']): boolean {
  try {
    return viewer() !== undefined;
  } catch {
    return false;
  }
}

function decodeQuery(request: HttpRequest): GraphqlRequest {
  if (wantsEvents(request) || negotiateType(request)) return parseQueryString(request.query);
  throw new AppError('not_acceptable', 'No media type of the response is accepted.');
}

function isBatch(requests: Requests): requests is Extract<Requests, readonly unknown[]> {
  return Array.isArray(requests);
}

/** Throws an AppError for an operation that must not run over this method, and `overloaded`. */
function runOperation(
  engine: Engine,
  operation: Operation,
  context: RequestContext,
): Promise<Executed> {
  if (operation.type === 'subscription') {
    throw new AppError(
      'invalid_graphql_request',
      'A subscription needs a WebSocket at /graphql, or a request for text/event-stream.',
    );
  }
  if (operation.type === 'mutation' && context.facts.readsOnly === true) {
    throw new AppError('method_not_allowed', 'A mutation is sent with POST.', {
      headers: ['Allow', 'POST'],
    });
  }
  return engine.execute(operation, context);
}

/** Runs operations in sequence (R26). An error of one of them is part of its result. */
export async function runBatch(
  { engine, log }: Pick<HttpDeps, 'engine' | 'log'>,
  requests: readonly (GraphqlRequest | AppError)[],
  context: RequestContext,
): Promise<Pick<Executed, 'json' | 'isRepeatable'>> {
  const { requestId } = context.facts;
  const texts: string[] = [];
  let isRepeatable = true;
  for (const request of requests) {
    try {
      if (request instanceof AppError) throw request;
      const executed = await engine.scheduler.run(() =>
        runOperation(engine, engine.prepare(request, requestId), context),
      );
      texts.push(executed.json);
      isRepeatable &&= executed.isRepeatable;
    } catch (error) {
      texts.push(JSON.stringify({ errors: toErrors(error, log, requestId) }));
      isRepeatable = false;
    }
  }
  return { json: `[${texts.join(',')}]`, isRepeatable };
}

/** Runs one operation; a subscription responds with its events as they come. */
async function respondWithEvents(
  { engine, streams }: HttpDeps,
  request: GraphqlRequest,
  { context, memory }: { readonly context: RequestContext; readonly memory: ConnectionMemory },
): Promise<HttpResponse> {
  try {
    const operation = engine.prepare(request, context.facts.requestId);
    if (operation.type !== 'subscription') {
      return toEvents((await runOperation(engine, operation, context)).json);
    }
    const account = engine.authorize(context.facts.viewer);
    return await andThen(account, (found) => streams.open(operation, memory, found));
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return toEvents(JSON.stringify({ errors: error.errors }));
  }
}
