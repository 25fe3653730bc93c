/**
 * The GraphQL endpoint: creates its parts, and responds to requests over HTTP. It is loaded after
 * the start, because `graphql` and `ws` take longer to load than the rest of the service.
 *
 * 1. A request waits as bytes until the scheduler grants its turn. A cached response needs no turn.
 * 2. In its turn it is decoded, prepared (parsed, checked, validated), executed and responded to,
 *    all in one call if the store answers at once.
 * 3. The operations of a batch have turns of their own, one after the other.
 */

import { type Access, findBefore } from '../auth/access.ts';
import { AppError, type GraphqlCode } from '../errors.ts';
import { createClientAddress } from '../http/client-address.ts';
import { markReplayed, readIdempotencyKey } from '../http/idempotency.ts';
import { parseJson } from '../http/json.ts';
import { parseQuery } from '../http/query.ts';
import type { LogFacts } from '../log.ts';
import type { HttpRequest, HttpResponse } from '../http/message.ts';
import type { Observer } from '../http/server/observe.ts';
import type { TrackedRecords } from '../records/tracked-records.ts';
import type { MadeResponse, ResponseCache } from '../records/response-cache.ts';
import type { Account } from '../store/model.ts';
import type { RequestContext, RequestFacts } from './context.ts';
import type { GraphqlRequest } from './documents/documents.ts';
import { createEngine, type Engine, type EngineDeps, type Operation } from './engine.ts';
import { RequestError } from './errors.ts';
import { createSubscriptions } from './events/subscriptions.ts';
import { checkBatchKey, checkOperation, runBatch } from './http/batch.ts';
import {
  decodeBody,
  negotiateType,
  parseQueryString,
  refusalResponse,
  type Requests,
  resultResponse,
  takesEvents,
  wantsEvents,
} from './http/messages.ts';
import { type MultipartDeps, readOperations } from './http/multipart.ts';
import { withHeaderKey } from './once.ts';
import { createEventStreams, type EventStreams, toEvents } from './http/sse.ts';
import { createWebSocketEndpoint } from './ws/upgrade.ts';

export interface EndpointDeps extends EngineDeps, Omit<HttpDeps, 'engine' | 'streams'> {
  readonly observer: Observer;
  readonly currentOf: Access['currentOf'];
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
  const sockets = createWebSocketEndpoint({ ...deps, engine, subscriptions });

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
  extends MultipartDeps, Pick<EngineDeps, 'metrics'>, Pick<Access, 'viewerOf' | 'writesNeedToken'> {
  readonly engine: Engine;
  readonly streams: EventStreams;
  readonly responses: ResponseCache;
}

/** Responses to longer bodies are not cached: the lookup costs more than it is likely to save. */
const keyBytesMax = 65_536;

export function createHttpEndpoint(deps: HttpDeps) {
  const { config, engine } = deps;
  const clientAddress = createClientAddress(config.trustedProxies);

  /** Responds from the cache, or when the turn of the request has come. */
  const respond = async (input: Input): Promise<HttpResponse> => {
    const findViewer = () => deps.viewerOf(input.request);
    const viewer = engine.hasReaders ? await findBefore(findViewer) : findViewer;
    // R36: without its token, a request that is in the cache is refused like any other.
    const { reader, isAuthorized } = identify(engine, viewer);
    const key = isAuthorized ? input.key : undefined;
    let isCached = true;
    const make = (records: TrackedRecords): Promise<MadeResponse> => {
      isCached = false;
      const client = (): string => clientAddress(input.request);
      return respondNow(deps, input, { requestId: input.request.id, client, viewer, records });
    };
    const { run: runInTurn } = engine.scheduler;
    const response = await deps.responses.respond(key, make, { reader, runInTurn });
    if (isCached) deps.metrics?.responseFromCache();
    return response;
  };

  return {
    /** Runs one operation or a batch, given as JSON. */
    async post(request: HttpRequest): Promise<HttpResponse> {
      const body = await request.readBody(config.bodyBytesMax);
      const decode = (): Requests => {
        request.reserveValues(body);
        return decodeBody(parseJson(body));
      };
      const isKeyed = request.header('idempotency-key') !== undefined;
      if (isKeyed || body.length > keyBytesMax) return respond({ request, decode });
      const key = `POST ${request.header('accept') ?? ''}\n${body.toString('latin1')}`;
      return respond({ request, decode, key });
    },
    /** Runs one operation or a batch with files, given as a multipart request. */
    async postMultipart(request: HttpRequest): Promise<HttpResponse> {
      const upload = deps.uploads.begin();
      try {
        // A key that is not valid is refused before the files are received.
        readIdempotencyKey(request);
        const beforeFile = () => refuseStranger(deps, request);
        const decode = await readOperations(request, upload, { ...deps, beforeFile });
        return await respond({ request, decode });
      } catch (error) {
        return refusalResponse(error, negotiateType(request));
      } finally {
        await upload.close();
      }
    },
    /** Runs a query, given as a query string. */
    async get(request: HttpRequest): Promise<HttpResponse> {
      const response = await respond({ request, decode: () => decodeQuery(request) });
      // The response to a GET can be cached, and depends on `Accept`.
      return { ...response, headers: [...response.headers, 'Vary', 'Accept'] };
    },
  };
}

/** R23: a token is checked before the first byte of a file is stored. */
async function refuseStranger(deps: HttpDeps, request: HttpRequest): Promise<void> {
  if (!deps.writesNeedToken || (await deps.viewerOf(request)) !== undefined) return;
  throw new AppError('missing_token', 'An upload needs a bearer token.');
}

interface Input {
  readonly request: HttpRequest;
  /** Called when the turn of the request has come: until then it waits as bytes. */
  readonly decode: () => Requests;
  /** Requests with equal keys have equal responses until something is written. */
  readonly key?: string | undefined;
}

/** Decodes, prepares, executes, responds. */
async function respondNow(
  deps: HttpDeps,
  { request, decode }: Input,
  facts: RequestFacts,
): Promise<MadeResponse> {
  const { engine, streams } = deps;
  const type = negotiateType(request);
  const asEvents = wantsEvents(request);
  const context = engine.createContext(facts);
  let operation: Operation | undefined;
  try {
    // What is sent by another method does not write, and has no key (R40).
    const key = request.method === 'POST' ? readIdempotencyKey(request) : undefined;
    const requests = key === undefined ? decode() : withHeaderKey(decode(), key);
    if (isBatch(requests)) {
      if (key !== undefined) await checkBatchKey(engine, requests, { key, requestId: request.id });
      const executed = await runBatch(engine, requests, context);
      request.logFacts = toLogFacts(`batch of ${requests.length}`, executed.codes);
      return withReplay(resultResponse(executed, type), context);
    }
    const lastEventId = takesEvents(request) ? readLastEventId(request) : undefined;
    const asked = lastEventId ? { ...requests, lastEventId } : requests;
    const prepared = engine.prepare(asked, request.id);
    operation = prepared;
    if (prepared.type === 'subscription' && takesEvents(request)) {
      const account = await engine.authorize(facts.viewer);
      return toUncacheable(await streams.open(prepared, request, account));
    }
    checkOperation(prepared, request.method);
    const executed = await engine.execute(prepared, context);
    request.logFacts = toLogFacts(nameOf(prepared), executed.codes);
    const response = asEvents
      ? toUncacheable(toEvents(executed.json))
      : resultResponse(executed, type);
    return withReplay(response, context);
  } catch (error) {
    request.logFacts = toLogFacts(nameOf(operation), engine.countRefusal(error));
    if (!asEvents || !(error instanceof RequestError))
      return toUncacheable(refusalResponse(error, type));
    return toUncacheable(toEvents(JSON.stringify({ errors: error.errors })));
  } finally {
    context.release();
  }
}

/** Polyfills of `EventSource` send it in the URL: a header of their own needs a preflight. */
function readLastEventId(request: HttpRequest): string | undefined {
  return (
    request.header('last-event-id') || parseQuery(request.query).get('lastEventId') || undefined
  );
}

/** `query Posts`; undefined for what is no operation. */
function nameOf(operation: Operation | undefined): string | undefined {
  if (operation === undefined) return undefined;
  const { type, name } = operation;
  return name === undefined ? type : `${type} ${name}`;
}

/** For the line of the request in the log. */
function toLogFacts(operation: string | undefined, codes: readonly GraphqlCode[]): LogFacts {
  const distinct = [...new Set(codes)].join(' ');
  return { operation: operation?.slice(0, 64), codes: distinct === '' ? undefined : distinct };
}

function withReplay(response: MadeResponse, { replays }: RequestContext): MadeResponse {
  return replays > 0 ? markReplayed(response) : response;
}

/** Marks a response that must not be cached. */
function toUncacheable(response: HttpResponse): MadeResponse {
  return { ...response, isUncacheable: true };
}

/** Who asks. A viewer that matters was found before: there is no promise. */
function identify({ authorize, readerOf }: Engine, viewer: RequestFacts['viewer']) {
  try {
    const reader = readerOf(authorize(viewer) as Account | undefined);
    return { reader, isAuthorized: true };
  } catch {
    return { reader: readerOf(), isAuthorized: false };
  }
}

function decodeQuery(request: HttpRequest): GraphqlRequest {
  if (wantsEvents(request) || negotiateType(request)) return parseQueryString(request.query);
  throw new AppError('not_acceptable', 'No media type of the response is accepted.');
}

function isBatch(requests: Requests): requests is Extract<Requests, readonly unknown[]> {
  return Array.isArray(requests);
}
