/** HTTP requests → responses: one operation, a batch, or a stream of events. */

import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import type { AnswerCache, Keep } from '../../http/answer-cache.ts';
import { parseJson } from '../../http/json.ts';
import type { HttpReply } from '../../http/message.ts';
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Reading } from '../../store/reading.ts';
import type { Records } from '../../store/store.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, GraphqlRequest } from '../engine.ts';
import { type Call, createOperations } from './operations.ts';
import { decodeQueryString, decodeRequest } from './params.ts';
import { resultReply, type ResponseType, negotiateType, refusalReply, statusOf } from './reply.ts';
import { type EventStreams, wantsEvents } from './sse.ts';

/** What is needed of an HTTP request, beside its body. */
export interface RequestFacts {
  readonly requestId: string;
  readonly viewer: RequestScope['viewer'];
  /** The header `Accept`. */
  readonly accept: string | undefined;
  /** True where the client wants to see `extensions.cost`. */
  readonly showCost: boolean;
}

type Reply = MaybePromise<HttpReply>;

export interface Runner {
  /** One operation or a batch, as JSON bytes. */
  post(body: Buffer, facts: RequestFacts): Reply;
  /** The same, parsed already, and never kept: it can hold files. Throws an AppError. */
  runValue(body: unknown, facts: RequestFacts): Reply;
  /** A query, as a query string. */
  get(query: string, facts: RequestFacts): Reply;
}

export interface RunnerDeps {
  readonly engine: Engine;
  readonly streams: EventStreams;
  readonly answers: AnswerCache<Reading>;
  readonly config: Pick<Config, 'graphqlHttpDraft'>;
}

export function createRunner({ engine, streams, answers, config }: RunnerDeps): Runner {
  const operations = createOperations(engine);

  const toCall = (facts: RequestFacts, readsOnly: boolean, records: Records): Call => {
    const { requestId, viewer, showCost } = facts;
    const scope = { requestId, viewer, records, budget: engine.createBudget() };
    return { scope, readsOnly, showCost };
  };
  const runBatch = (body: readonly unknown[], call: Call, { type, keep }: ResponseOptions): Reply =>
    andThen(operations.runBatch(body, call), ({ json, repeatable }) => {
      // One status cannot stand for several results.
      const reply = resultReply(json, type, 200);
      return repeatable ? keep(reply) : reply;
    });
  const runOne = (request: GraphqlRequest, call: Call, { type, keep }: ResponseOptions): Reply =>
    andThen(operations.run(request, call), ({ result, json, repeatable }) => {
      const reply = resultReply(json, type, statusOf(result, type, config.graphqlHttpDraft));
      return repeatable ? keep(reply) : reply;
    });
  /** Equal keys are the same request: until something is written, a query has the same result. */
  const runValue = (value: () => unknown, facts: RequestFacts, key?: string): Reply =>
    answers.get(key, (records, keep) => {
      const body = value();
      const options = { type: typeFor(facts), keep };
      if (Array.isArray(body)) {
        checkBatch(body);
        return held(toCall(facts, false, records), (call) => runBatch(body, call, options));
      }
      const request = decodeRequest(body);
      return held(toCall(facts, false, records), (call) =>
        wantsEvents(facts.accept)
          ? streams.run(request, call.scope, false)
          : runOne(request, call, options),
      );
    });
  const post = (body: Buffer, facts: RequestFacts): Reply => {
    const isKept = !facts.showCost && !wantsEvents(facts.accept) && body.length <= keyBytesMax;
    return runValue(() => parseJson(body), facts, isKept ? toKey(typeFor(facts), body) : undefined);
  };
  const get = (query: string, facts: RequestFacts): Reply =>
    answers.get(undefined, (records, keep) => {
      const request = decodeQueryString(query);
      return held(toCall(facts, true, records), (call) => {
        if (wantsEvents(facts.accept)) return streams.run(request, call.scope, true);
        const type = negotiateType(facts.accept);
        if (type === undefined) throw notAcceptable();
        return runOne(request, call, { type, keep });
      });
    });

  return {
    post: (body, facts) => refusable(facts, () => post(body, facts)),
    runValue: (body, facts) => runValue(() => body, facts),
    get: (query, facts) => refusable(facts, () => get(query, facts)),
  };
}

/** Runs a call and releases its budget, whether it succeeds or fails. */
function held(call: Call, run: (call: Call) => Reply): Reply {
  const { budget } = call.scope;
  let reply: Reply | undefined;
  try {
    reply = run(call);
  } finally {
    if (reply === undefined || !isPromise(reply)) budget.release();
  }
  return isPromise(reply) ? reply.finally(() => budget.release()) : reply;
}

/** The media type of a response, and how it is cached. */
interface ResponseOptions {
  readonly type: ResponseType;
  readonly keep: Keep;
}

/** To look for a longer body would cost more than it is likely to save. */
const keyBytesMax = 65_536;

function toKey(type: ResponseType, body: Buffer): string {
  return `POST ${type} ${body.toString('latin1')}`;
}

/** A POST never fails for its `Accept` (R6). */
function typeFor({ accept }: RequestFacts): ResponseType {
  return negotiateType(accept) ?? 'application/json';
}

/** Refusals before execution have the shape of a GraphQL response too. */
function refusable(facts: RequestFacts, make: () => Reply): Reply {
  try {
    const reply = make();
    return isPromise(reply) ? reply.catch((error) => toRefusalReply(error, facts)) : reply;
  } catch (error) {
    return toRefusalReply(error, facts);
  }
}

/** An AppError as the response to this request; any other error is rethrown. */
export function toRefusalReply(error: unknown, facts: RequestFacts): HttpReply {
  if (!(error instanceof AppError)) throw error;
  return refusalReply(error, typeFor(facts));
}

/** Operations of a batch (R26). They share one budget, whatever their number. */
const batchOperationsMax = 20;

function checkBatch(requests: readonly unknown[]): void {
  if (requests.length === 0) {
    throw new AppError('invalid_graphql_request', 'A batch has at least one operation.');
  }
  if (requests.length > batchOperationsMax) {
    throw new AppError(
      'content_too_large',
      `A batch has at most ${batchOperationsMax} operations.`,
    );
  }
}

function notAcceptable(): AppError {
  return new AppError('not_acceptable', 'The response has no media type that the client accepts.');
}
