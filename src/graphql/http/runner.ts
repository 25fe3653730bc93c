/** HTTP requests → responses: one operation, a batch, or a stream of events. */

import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import type { Answer, AnswerCache } from '../../http/answer-cache.ts';
import { parseJson } from '../../http/json.ts';
import type { HttpReply } from '../../http/message.ts';
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { RequestScope } from '../context.ts';
import type { Engine, GraphqlRequest } from '../engine.ts';
import { type Call, type CostConfig, createOperations } from './operations.ts';
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
  readonly answers: AnswerCache;
  readonly config: CostConfig & Pick<Config, 'graphqlHttpDraft'>;
}

export function createRunner({ engine, streams, answers, config }: RunnerDeps): Runner {
  const operations = createOperations(engine, config);

  const toCall = ({ requestId, viewer, showCost }: RequestFacts, readsOnly: boolean): Call => {
    return { scope: { requestId, viewer, budget: engine.createBudget() }, readsOnly, showCost };
  };
  const runBatch = (body: readonly unknown[], facts: RequestFacts, keep: Keep): Reply => {
    checkBatch(body);
    const call = toCall(facts, false);
    return whileHeld(call, () =>
      andThen(operations.runBatch(body, call), ({ json, repeatable }) => {
        if (repeatable) keep(json);
        // One status cannot stand for several results.
        return resultReply(json, typeFor(facts), 200);
      }),
    );
  };
  const run = (body: unknown, facts: RequestFacts, keep: Keep): Reply => {
    if (Array.isArray(body)) return runBatch(body, facts, keep);
    const call = toCall(facts, false);
    const request = decodeRequest(body);
    if (wantsEvents(facts.accept)) {
      return whileHeld(call, () => streams.run(request, call.scope, false));
    }
    return answerTo(request, call, { type: typeFor(facts), keep });
  };
  const answerTo = (request: GraphqlRequest, call: Call, { type, keep }: ResponseOptions): Reply =>
    whileHeld(call, () =>
      andThen(operations.run(request, call), ({ result, json, repeatable }) => {
        if (repeatable) keep(json);
        return resultReply(json, type, statusOf(result, type, config.graphqlHttpDraft));
      }),
    );
  /** Equal bytes are the same request: until something is written, a query has the same result. */
  const post = (body: Buffer, facts: RequestFacts): Reply => {
    if (facts.showCost || wantsEvents(facts.accept)) {
      return run(parseJson(body), facts, keepNothing);
    }
    const type = typeFor(facts);
    // While the cache is empty no key is made: a series of mutations does without.
    const known = answers.isEmpty() ? undefined : answers.find(toKey(type, body));
    if (known !== undefined) return resultReply(known, type, 200);
    const revision = answers.revision();
    const keep: Keep =
      revision === undefined
        ? keepNothing
        : (answer) => answers.keep(toKey(type, body), answer, revision);
    return run(parseJson(body), facts, keep);
  };
  const get = (query: string, facts: RequestFacts): Reply => {
    const call = toCall(facts, true);
    const request = decodeQueryString(query);
    if (wantsEvents(facts.accept)) {
      return whileHeld(call, () => streams.run(request, call.scope, true));
    }
    const type = negotiateType(facts.accept);
    if (type === undefined) throw notAcceptable();
    return answerTo(request, call, { type, keep: keepNothing });
  };

  return {
    post: (body, facts) => refusable(facts, () => post(body, facts)),
    runValue: (body, facts) => run(body, facts, keepNothing),
    get: (query, facts) => refusable(facts, () => get(query, facts)),
  };
}

/** Runs a call and releases its budget, whether it succeeds or fails. */
function whileHeld({ scope }: Call, run: () => Reply): Reply {
  let reply: Reply | undefined;
  try {
    reply = run();
  } finally {
    if (reply === undefined || !isPromise(reply)) scope.budget.release();
  }
  return isPromise(reply) ? reply.finally(() => scope.budget.release()) : reply;
}

/** Caches a response for equal requests. */
type Keep = (answer: Answer) => void;
/** The media type of a response, and how it is cached. */
interface ResponseOptions {
  readonly type: ResponseType;
  readonly keep: Keep;
}

const keepNothing: Keep = () => undefined;

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
