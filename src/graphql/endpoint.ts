/**
 * The GraphQL endpoint: creates its parts, and answers requests over HTTP. It is loaded by the
 * first request that needs it, because `graphql` and `ws` take longer to load than the rest of the
 * service.
 */

import type { Access } from '../auth/access.ts';
import { AppError } from '../errors.ts';
import { parseJson } from '../http/json.ts';
import type { HttpRequest, HttpResponse } from '../http/message.ts';
import type { Observer } from '../http/server/observe.ts';
import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { ResponseCache } from '../records/response-cache.ts';
import type { Account } from '../store/model.ts';
import type { RequestScope } from './context.ts';
import type { GraphqlRequest } from './documents/documents.ts';
import {
  createEngine,
  type Engine,
  type EngineDeps,
  type Prepared,
  type SerializedResult,
  toRefused,
} from './engine.ts';
import { toRefusal } from './errors.ts';
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
}

export type GraphqlEndpoint = ReturnType<typeof createEndpoint>;

/** Different subscriptions: each is executed once per event; a thousand take about 50 ms. */
const distinctMax = 1_000;

export function createEndpoint(deps: EndpointDeps) {
  const { config, log, pool, metrics } = deps;
  const engine = createEngine(deps);
  const { placed } = deps.store;
  const subscriptions = createSubscriptions({ engine, distinctMax, pool, log, metrics, placed });
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
  extends MultipartDeps, Pick<EngineDeps, 'metrics'>, Pick<Access, 'viewerOf' | 'readsNeedToken'> {
  readonly engine: Engine;
  readonly streams: EventStreams;
  readonly responses: ResponseCache;
}

/** Responses to longer bodies are not cached: the lookup costs more than it is likely to save. */
const keyBytesMax = 65_536;

export function createHttpEndpoint(deps: HttpDeps) {
  return {
    /** Runs one operation or a batch, given as JSON. */
    async post(request: HttpRequest): Promise<HttpResponse> {
      const body = await request.readBody(deps.config.bodyBytesMax);
      const isCacheable = body.length <= keyBytesMax && !wantsEvents(request);
      const key = isCacheable
        ? `POST ${negotiateType(request) ?? ''} ${body.toString('latin1')}`
        : undefined;
      const read = (): Requests => decodeBody(parseJson(body));
      return (await findCached(deps, request, key)) ?? run(deps, request, { read, key });
    },
    /** Runs one operation or a batch with files, given as a multipart request. */
    async postMultipart(request: HttpRequest): Promise<HttpResponse> {
      const upload = deps.uploads.begin();
      try {
        const requests = await readOperations(request, upload, deps);
        return await run(deps, request, { read: () => requests });
      } catch (error) {
        return refusalResponse(error, negotiateType(request));
      } finally {
        await upload.close();
      }
    },
    /** Runs a query, given as a query string. */
    async get(request: HttpRequest): Promise<HttpResponse> {
      const response = await run(deps, request, { read: () => decodeQuery(request) });
      // The response to a GET can be cached, and depends on `Accept`.
      return { ...response, headers: [...response.headers, 'Vary', 'Accept'] };
    },
  };
}

interface Source {
  /** Decodes the request when its turn has come: until then it waits as bytes. */
  readonly read: () => Requests;
  /** Requests with equal keys have equal responses until something is written. */
  readonly key?: string | undefined;
}

/** Runs a request. Errors before the execution have the form of a GraphQL response too. */
async function run(
  deps: HttpDeps,
  request: HttpRequest,
  { read, key }: Source,
): Promise<HttpResponse> {
  const { engine, responses } = deps;
  const turn = engine.scheduler.turn();
  if (turn !== undefined) {
    await turn;
    // Another request may have made the same response meanwhile.
    const cached = await findCached(deps, request, key);
    if (cached !== undefined) return cached;
  }
  const budget = engine.createBudget();
  try {
    const requests = read();
    const records = responses.read();
    const viewer = (): MaybePromise<Account | undefined> => deps.viewerOf(request);
    const { id: requestId, method } = request;
    const scope = { requestId, viewer, records, budget, readsOnly: method !== 'POST' };
    if (!isBatch(requests) && wantsEvents(request)) {
      return await respondWithEvents(deps, requests, scope);
    }
    const running = isBatch(requests)
      ? runBatch(engine, requests, scope)
      : runOperation(engine, engine.prepare(requests), scope);
    // A value is not awaited: V8 would hold it in the state of this function, which has survived
    // collections while it waited for its turn, and copy each result until the next full one.
    const { json, result, isRepeatable } = isPromise(running) ? await running : running;
    const response = resultResponse(json, result, negotiateType(request));
    return key !== undefined && isRepeatable ? responses.store(key, records, response) : response;
  } catch (error) {
    return refusalResponse(error, negotiateType(request));
  } finally {
    budget.release();
  }
}

/** R36: without a token, a request that is in the cache is refused like any other. */
function findCached(
  deps: HttpDeps,
  request: HttpRequest,
  key: string | undefined,
): MaybePromise<HttpResponse | undefined> {
  const find = (): HttpResponse | undefined => {
    const cached = deps.responses.find(key);
    if (cached !== undefined) deps.metrics?.responseFromCache();
    return cached;
  };
  if (!deps.readsNeedToken) return find();
  const viewer = Promise.resolve(request).then(deps.viewerOf);
  return viewer.then(
    (found) => (found === undefined ? undefined : find()),
    () => undefined,
  );
}

function decodeQuery(request: HttpRequest): GraphqlRequest {
  if (wantsEvents(request) || negotiateType(request)) return parseQueryString(request.query);
  throw new AppError('not_acceptable', 'No media type of the response is accepted.');
}

function isBatch(requests: Requests): requests is Extract<Requests, readonly unknown[]> {
  return Array.isArray(requests);
}

/** What to send. A batch has several results. */
type Outcome = Omit<SerializedResult, 'result'> & Partial<Pick<SerializedResult, 'result'>>;

/** Throws an AppError for an operation that must not run over this method, and `overloaded`. */
function runOperation(
  engine: Engine,
  prepared: Prepared,
  scope: RequestScope,
): MaybePromise<Outcome> {
  if (prepared.kind === 'refused') return toRefused(prepared.errors);
  if (prepared.operation === 'subscription') {
    throw new AppError(
      'invalid_graphql_request',
      'A subscription needs a WebSocket at /graphql, or a request for text/event-stream.',
    );
  }
  if (prepared.operation === 'mutation' && scope.readsOnly === true) {
    throw new AppError('method_not_allowed', 'A mutation is sent with POST.', {
      headers: ['Allow', 'POST'],
    });
  }
  return engine.execute(prepared, scope);
}

/** Runs operations in sequence (R26). An error of one of them is part of its result. */
export async function runBatch(
  engine: Engine,
  requests: readonly (GraphqlRequest | AppError)[],
  scope: RequestScope,
): Promise<Outcome> {
  const texts: string[] = [];
  let isRepeatable = true;
  for (const request of requests) {
    const turn = engine.scheduler.turn();
    if (turn !== undefined) await turn;
    try {
      if (request instanceof AppError) throw request;
      const running = runOperation(engine, engine.prepare(request), scope);
      const outcome = isPromise(running) ? await running : running;
      texts.push(outcome.json);
      isRepeatable &&= outcome.isRepeatable;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      texts.push(toRefused([toRefusal(error)]).json);
      isRepeatable = false;
    }
  }
  return { json: `[${texts.join(',')}]`, isRepeatable };
}

/** Runs one operation; a subscription responds with its events as they come. */
async function respondWithEvents(
  { engine, streams }: HttpDeps,
  request: GraphqlRequest,
  scope: RequestScope,
): Promise<HttpResponse> {
  const prepared = engine.prepare(request);
  if (prepared.kind === 'ready' && prepared.operation === 'subscription') {
    await engine.authorize(scope.viewer);
    return streams.open(prepared);
  }
  const { json } = await runOperation(engine, prepared, scope);
  return toEvents(json);
}
