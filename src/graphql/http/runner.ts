/** What an HTTP request asks for → a reply: one operation, a batch, or a stream of events. */

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
import { answerReply, type AnswerType, negotiateAnswer, refusalReply, statusOf } from './reply.ts';
import { type EventStreams, wantsEvents } from './sse.ts';

/** What is needed of an HTTP request, beside its body. */
export interface Asking {
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
  post(body: Buffer, asking: Asking): Reply;
  /** The same, parsed already, and never kept: it can hold files. Throws an AppError. */
  runValue(body: unknown, asking: Asking): Reply;
  /** A query, as a query string. */
  get(query: string, asking: Asking): Reply;
}

export interface RunnerDeps {
  readonly engine: Engine;
  readonly streams: EventStreams;
  readonly answers: AnswerCache;
  readonly config: CostConfig & Pick<Config, 'graphqlBatchMax' | 'graphqlHttpDraft'>;
}

export function createRunner({ engine, streams, answers, config }: RunnerDeps): Runner {
  const operations = createOperations(engine, config);

  const toCall = ({ requestId, viewer, showCost }: Asking, readsOnly: boolean): Call => {
    return { scope: { requestId, viewer, budget: engine.createBudget() }, readsOnly, showCost };
  };
  const runBatch = (body: readonly unknown[], asking: Asking, keep: Keep): Reply => {
    checkBatch(body, config.graphqlBatchMax);
    const call = toCall(asking, false);
    return whileHeld(call, () =>
      andThen(operations.runBatch(body, call), ({ json, repeatable }) => {
        if (repeatable) keep(json);
        // One status cannot speak for all results.
        return answerReply(json, typeFor(asking), 200);
      }),
    );
  };
  const run = (body: unknown, asking: Asking, keep: Keep): Reply => {
    if (Array.isArray(body)) return runBatch(body, asking, keep);
    const call = toCall(asking, false);
    const request = decodeRequest(body);
    if (wantsEvents(asking.accept)) {
      return whileHeld(call, () => streams.run(request, call.scope, false));
    }
    return answerTo(request, call, { type: typeFor(asking), keep });
  };
  const answerTo = (request: GraphqlRequest, call: Call, { type, keep }: Giving): Reply =>
    whileHeld(call, () =>
      andThen(operations.run(request, call), ({ result, json, repeatable }) => {
        if (repeatable) keep(json);
        return answerReply(json, type, statusOf(result, type, config.graphqlHttpDraft));
      }),
    );
  /** Equal bytes ask for the same: while nothing is written, a query brings the same answer. */
  const post = (body: Buffer, asking: Asking): Reply => {
    if (asking.showCost || wantsEvents(asking.accept)) {
      return run(parseJson(body), asking, keepNothing);
    }
    const type = typeFor(asking);
    // After a write nothing is kept: one mutation after the other makes no keys.
    const known = answers.isEmpty() ? undefined : answers.find(toKey(type, body));
    if (known !== undefined) return answerReply(known, type, 200);
    const revision = answers.revision();
    const keep: Keep =
      revision === undefined
        ? keepNothing
        : (answer) => answers.keep(toKey(type, body), answer, revision);
    return run(parseJson(body), asking, keep);
  };
  const get = (query: string, asking: Asking): Reply => {
    const call = toCall(asking, true);
    const request = decodeQueryString(query);
    if (wantsEvents(asking.accept)) {
      return whileHeld(call, () => streams.run(request, call.scope, true));
    }
    const type = negotiateAnswer(asking.accept);
    if (type === undefined) throw notAcceptable();
    return answerTo(request, call, { type, keep: keepNothing });
  };

  return {
    post: (body, asking) => refusable(asking, () => post(body, asking)),
    runValue: (body, asking) => run(body, asking, keepNothing),
    get: (query, asking) => refusable(asking, () => get(query, asking)),
  };
}

/** Runs a call, and gives back what it held of the memory for answers, whatever comes of it. */
function whileHeld({ scope }: Call, run: () => Reply): Reply {
  let reply: Reply | undefined;
  try {
    reply = run();
  } finally {
    if (reply === undefined || !isPromise(reply)) scope.budget.release();
  }
  return isPromise(reply) ? reply.finally(() => scope.budget.release()) : reply;
}

/** Takes an answer that the next equal request may have too. */
type Keep = (answer: Answer) => void;
/** How an answer is given. */
interface Giving {
  readonly type: AnswerType;
  readonly keep: Keep;
}

const keepNothing: Keep = () => undefined;

function toKey(type: AnswerType, body: Buffer): string {
  return `POST ${type} ${body.toString('latin1')}`;
}

/** A POST never fails for its `Accept` (R6). */
function typeFor({ accept }: Asking): AnswerType {
  return negotiateAnswer(accept) ?? 'application/json';
}

/** What is refused before anything runs has the shape of a GraphQL answer too. */
function refusable(asking: Asking, make: () => Reply): Reply {
  try {
    const reply = make();
    return isPromise(reply) ? reply.catch((error) => toRefusalReply(error, asking)) : reply;
  } catch (error) {
    return toRefusalReply(error, asking);
  }
}

/** An AppError as the answer to this request; anything else is thrown on. */
export function toRefusalReply(error: unknown, asking: Asking): HttpReply {
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
