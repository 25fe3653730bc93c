/** Answers HTTP requests: one operation, a batch, or a stream of events. */

import { AppError } from '../../errors.ts';
import { parseJson } from '../../http/json.ts';
import type { Handler, HttpRequest, HttpResponse } from '../../http/message.ts';
import type { ResponseCache } from '../../records/response-cache.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { Account } from '../../store/model.ts';
import type { RequestScope } from '../context.ts';
import type { Engine } from '../engine.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import { type MultipartDeps, withOperations } from './multipart.ts';
import { type Outcome, runBatch, runOperation } from './operations.ts';
import { decodeBody, parseQueryString, type Requests } from './params.ts';
import {
  negotiateType,
  refusalResponse,
  type ResponseType,
  resultResponse,
  statusOf,
} from './response.ts';
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
  const { engine, streams, responses, viewerOf, config, metrics } = deps;

  /** Requests with equal `key` have equal responses until something is written. */
  const run = async (
    requests: Requests,
    request: HttpRequest,
    key?: string,
  ): Promise<HttpResponse> => {
    const records = responses.read();
    const budget = engine.createBudget();
    const viewer = (): MaybePromise<Account | undefined> => viewerOf(request);
    const scope = { requestId: request.id, viewer, records, budget };
    const call = { scope, readsOnly: request.method !== 'POST' };
    try {
      if (!isBatch(requests) && wantsEvents(request)) return await streams.run(requests, call);
      const outcome = isBatch(requests)
        ? await runBatch(engine, requests, call)
        : await runOperation(engine, requests, call);
      const response = toResponse(outcome, request);
      if (key === undefined || !outcome.isRepeatable) return response;
      return responses.store(key, records, response);
    } finally {
      budget.release();
    }
  };
  const toResponse = ({ json, result }: Outcome, request: HttpRequest): HttpResponse => {
    const type = typeFor(request);
    // A batch has several results but one status.
    const status = result ? statusOf(result, type) : 200;
    return resultResponse(json, type, { status, errors: result?.errors });
  };

  return {
    async post(request) {
      const body = await request.readBody(config.bodyBytesMax);
      const key = wantsEvents(request) ? undefined : toKey(body, request);
      const cached = responses.find(key);
      if (cached !== undefined && (await mayRead(engine, () => viewerOf(request)))) {
        metrics?.responseFromCache();
        return cached;
      }
      return refusable(request, async () => {
        const turn = engine.scheduler.turn();
        if (turn !== undefined) await turn;
        return run(decodeBody(parseJson(body)), request, key);
      });
    },
    postMultipart: (request) =>
      refusable(request, () =>
        withOperations(request, deps, async (requests) => {
          const turn = engine.scheduler.turn();
          if (turn !== undefined) await turn;
          return run(requests, request);
        }),
      ),
    async get(request) {
      const response = await refusable(request, async () => {
        if (!wantsEvents(request) && negotiateType(request.header('accept')) === undefined) {
          throw new AppError('not_acceptable', 'No media type of the response is accepted.');
        }
        const turn = engine.scheduler.turn();
        if (turn !== undefined) await turn;
        return run(parseQueryString(request.query), request);
      });
      // The response to a GET can be cached, and depends on `Accept`.
      return { ...response, headers: [...response.headers, 'Vary', 'Accept'] };
    },
  };
}

/** R36: without a token, a request that is answered from the cache is refused like any other. */
async function mayRead(
  engine: Pick<Engine, 'authorize'>,
  viewer: RequestScope['viewer'],
): Promise<boolean> {
  try {
    await engine.authorize(viewer);
    return true;
  } catch {
    return false;
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
