/** Runs HTTP requests: one operation, a batch, or a stream of events. */

import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import type { ResponseCache } from '../../http/response-cache.ts';
import { parseJson } from '../../http/json.ts';
import type { HttpResponse, HttpRequest } from '../../http/message.ts';
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Account } from '../../store/model.ts';
import type { Reading } from '../../store/reading.ts';
import type { Records } from '../../store/store.ts';
import { type MultipartDeps, runMultipart } from './multipart.ts';
import { type Call, type Outcome, runBatch, runOperation } from './operations.ts';
import { decodeRequest, invalidRequest, parseQueryString } from './params.ts';
import {
  resultResponse,
  type ResponseType,
  negotiateType,
  refusalResponse,
  statusOf,
} from './response.ts';
import { type EventStreams, wantsEvents } from './sse.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';

export interface Runner {
  /** Runs one operation or a batch, given as JSON. */
  post(body: Buffer, request: HttpRequest): MaybePromise<HttpResponse>;
  /** Runs one operation or a batch with files, given as a multipart request. */
  postMultipart(request: HttpRequest): MaybePromise<HttpResponse>;
  /** Runs a query, given as a query string. */
  get(request: HttpRequest): MaybePromise<HttpResponse>;
}

export interface RunnerDeps extends MultipartDeps {
  readonly streams: EventStreams;
  readonly metrics?: GraphqlMetrics | undefined;
  readonly responses: ResponseCache<Reading>;
  /** The account of the request's token (R23); undefined without one. Throws if it is invalid. */
  readonly viewerOf: (request: Pick<HttpRequest, 'header'>) => MaybePromise<Account | undefined>;
  readonly config: MultipartDeps['config'] & Pick<Config, 'graphqlHttpDraft'>;
}

export function createRunner(deps: RunnerDeps): Runner {
  const { engine, streams, responses, viewerOf, config, metrics } = deps;

  const toCall = (request: HttpRequest, records: Records): Call => {
    const viewer = (): MaybePromise<Account | undefined> => viewerOf(request);
    return {
      scope: { requestId: request.id, viewer, records, budget: engine.createBudget() },
      readsOnly: request.method !== 'POST',
      showCost: showsCost(request),
    };
  };
  /** Requests with equal `key` have equal responses until something is written. */
  const run = (value: () => unknown, request: HttpRequest, key?: string) => {
    let isKept = true;
    const response = responses.get(key, (records, keep) => {
      isKept = false;
      const body = value();
      const type = typeFor(request);
      const toResponse = ({ json, repeatable, result }: Outcome): HttpResponse => {
        // A batch has several results but one status.
        const status = result ? statusOf(result, type, config.graphqlHttpDraft) : 200;
        const made = resultResponse(json, type, { status, errors: result?.errors });
        return repeatable ? keep(made) : made;
      };
      if (Array.isArray(body)) {
        checkBatch(body);
        return held(toCall(request, records), (call) =>
          andThen(runBatch(engine, body, call), toResponse),
        );
      }
      const decoded = decodeRequest(body);
      return held(toCall(request, records), (call) =>
        wantsEvents(request)
          ? streams.run(decoded, call)
          : andThen(runOperation(engine, decoded, call), toResponse),
      );
    });
    if (isKept) metrics?.responseFromCache();
    return response;
  };

  return {
    post: (body, request) =>
      refusable(request, () => {
        const isKept = !showsCost(request) && !wantsEvents(request) && body.length <= keyBytesMax;
        const key = isKept ? `POST ${typeFor(request)} ${body.toString('latin1')}` : undefined;
        return run(() => parseJson(body), request, key);
      }),
    postMultipart: (request) =>
      refusable(request, () => runMultipart(request, deps, (body) => run(() => body, request))),
    get: (request) => {
      const response = refusable(request, () => {
        if (!wantsEvents(request) && negotiateType(request.header('accept')) === undefined) {
          throw new AppError('not_acceptable', 'No media type of the response is accepted.');
        }
        return run(() => parseQueryString(request.query), request);
      });
      // The response to a GET can be cached, and depends on `Accept`.
      return andThen(response, varyByAccept);
    },
  };
}

function varyByAccept(response: HttpResponse): HttpResponse {
  return { ...response, headers: [...response.headers, 'Vary', 'Accept'] };
}

function showsCost(request: HttpRequest): boolean {
  return request.header('graphql-cost') !== undefined;
}

/** Runs a call and releases its budget, whether it succeeds or fails. */
function held(call: Call, run: (call: Call) => MaybePromise<HttpResponse>) {
  const { budget } = call.scope;
  let response: MaybePromise<HttpResponse> | undefined;
  try {
    response = run(call);
  } finally {
    if (response === undefined || !isPromise(response)) budget.release();
  }
  return isPromise(response) ? response.finally(() => budget.release()) : response;
}

/** Responses to longer bodies are not cached: the lookup costs more than it is likely to save. */
const keyBytesMax = 65_536;

/** A POST is not refused because of its `Accept` (R6). */
function typeFor(request: HttpRequest): ResponseType {
  return negotiateType(request.header('accept')) ?? 'application/json';
}

/** Errors before the execution have the form of a GraphQL response too. */
function refusable(request: HttpRequest, make: () => MaybePromise<HttpResponse>) {
  const refuse = (error: unknown): HttpResponse => {
    if (!(error instanceof AppError)) throw error;
    return refusalResponse(error, typeFor(request));
  };
  try {
    const response = make();
    return isPromise(response) ? response.catch(refuse) : response;
  } catch (error) {
    return refuse(error);
  }
}

/** Operations of a batch (R26). They share one budget, whatever their number. */
const operationsMax = 20;

function checkBatch(requests: readonly unknown[]): void {
  if (requests.length === 0) throw invalidRequest('A batch has at least one operation.');
  if (requests.length > operationsMax) {
    throw new AppError('content_too_large', `A batch has at most ${operationsMax} operations.`);
  }
}
