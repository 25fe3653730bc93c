/** Answers HTTP requests: one operation, a batch, or a stream of events. */

import { AppError } from '../../errors.ts';
import { parseJson } from '../../http/json.ts';
import type { Handler, HttpRequest, HttpResponse } from '../../http/message.ts';
import type { ResponseCache } from '../../records/response-cache.ts';
import { isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Account } from '../../store/model.ts';
import type { Engine } from '../engine.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import { type MultipartDeps, withOperations } from './multipart.ts';
import { runBatch, runOperation } from './operations.ts';
import { decodeBody, parseQueryString, type Requests } from './params.ts';
import { negotiateType, refusalResponse, type ResponseType, resultResponse } from './response.ts';
import { type EventStreams, wantsEvents } from './sse.ts';

export interface Runner {
  /** Runs one operation or a batch, given as JSON. */
  readonly post: Handler;
  /** Runs one operation or a batch with files, given as a multipart request. */
  readonly postMultipart: Handler;
  /** Runs a query, given as a query string. */
  readonly get: Handler;
}

export interface RunnerDeps extends MultipartDeps {
  readonly engine: Engine;
  readonly streams: EventStreams;
  readonly responses: ResponseCache;
  /** The account of the request's token (R23); undefined without one. Throws if it is invalid. */
  readonly viewerOf: (request: Pick<HttpRequest, 'header'>) => MaybePromise<Account | undefined>;
  readonly metrics?: GraphqlMetrics | undefined;
}

/** Responses to longer bodies are not cached: the lookup costs more than it is likely to save. */
const keyBytesMax = 65_536;

export function createRunner(deps: RunnerDeps): Runner {
  const { engine, streams, responses, viewerOf, config } = deps;

  /**
   * Runs what `read` decodes; a body waits for its turn as bytes. Requests with equal `key` have
   * equal responses until something is written.
   */
  const run = async (
    request: HttpRequest,
    read: () => Requests,
    key?: string,
  ): Promise<HttpResponse> => {
    const turn = engine.scheduler.turn();
    if (turn !== undefined) {
      await turn;
      // Another request may have made the same response meanwhile.
      const cached = await findCached(deps, request, key);
      if (cached !== undefined) return cached;
    }
    const requests = read();
    const records = responses.read();
    const budget = engine.createBudget();
    const viewer = (): MaybePromise<Account | undefined> => viewerOf(request);
    const scope = { requestId: request.id, viewer, records, budget };
    const call = { scope, readsOnly: request.method !== 'POST' };
    try {
      if (!isBatch(requests) && wantsEvents(request)) return await streams.run(requests, call);
      const running = isBatch(requests)
        ? runBatch(engine, requests, call)
        : runOperation(engine, requests, call);
      // A value is not awaited: V8 would hold it in the state of this function, which has survived
      // collections while it waited for its turn, and copy each result until the next full one.
      const outcome = isPromise(running) ? await running : running;
      const response = resultResponse(outcome.json, typeFor(request), outcome.result);
      if (key === undefined || !outcome.isRepeatable) return response;
      return responses.store(key, records, response);
    } finally {
      budget.release();
    }
  };

  return {
    async post(request) {
      const body = await request.readBody(config.bodyBytesMax);
      const key = wantsEvents(request) ? undefined : toKey(body, request);
      const read = (): Requests => decodeBody(parseJson(body));
      const cached = await findCached(deps, request, key);
      return cached ?? refusable(request, () => run(request, read, key));
    },
    postMultipart: (request) =>
      refusable(request, () =>
        withOperations(request, deps, (requests) => run(request, () => requests)),
      ),
    async get(request) {
      const response = await refusable(request, async () => {
        if (!wantsEvents(request) && negotiateType(request.header('accept')) === undefined) {
          throw new AppError('not_acceptable', 'No media type of the response is accepted.');
        }
        return run(request, () => parseQueryString(request.query));
      });
      // The response to a GET can be cached, and depends on `Accept`.
      return { ...response, headers: [...response.headers, 'Vary', 'Accept'] };
    },
  };
}

/** R36: without a token, a request that is in the cache is refused like any other. */
function findCached(
  { engine, responses, viewerOf, metrics }: RunnerDeps,
  request: HttpRequest,
  key: string | undefined,
): MaybePromise<HttpResponse | undefined> {
  const cached = responses.find(key);
  if (cached === undefined) return undefined;
  const use = (): HttpResponse => {
    metrics?.responseFromCache();
    return cached;
  };
  try {
    const authorized = engine.authorize(() => viewerOf(request));
    return isPromise(authorized) ? authorized.then(use, () => undefined) : use();
  } catch {
    return undefined;
  }
}

function isBatch(requests: Requests): requests is Extract<Requests, readonly unknown[]> {
  return Array.isArray(requests);
}

function toKey(body: Buffer, request: HttpRequest): string | undefined {
  if (body.length > keyBytesMax) return undefined;
  return `POST ${typeFor(request)} ${body.toString('latin1')}`;
}

/** A POST is not refused because of its `Accept` (R6). */
function typeFor(request: HttpRequest): ResponseType {
  return negotiateType(request.header('accept')) ?? 'application/json';
}

/** Errors before the execution have the form of a GraphQL response too. */
async function refusable(
  request: HttpRequest,
  make: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return refusalResponse(error, typeFor(request));
  }
}
