/**
 * The GraphQL engine, independent of HTTP and WebSocket. A decoded request is prepared (parsed,
 * checked against the limits, validated), then executed or subscribed to. An operation that has no
 * data is refused with a RequestError; errors have a code (R24), and their number and length are
 * limited.
 */

import {
  createSourceEventStream,
  execute,
  type ExecutionArgs,
  type ExecutionResult,
  getOperationAST,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { Config } from '../config.ts';
import { AppError, type GraphqlCode } from '../errors.ts';
import { invalidKey } from '../http/idempotency.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool } from '../memory-pool.ts';
import type { GraphqlMetrics, Outcome } from '../watch/service-metrics.ts';
import type { Announced } from '../domain/comments.ts';
import type { Author, Comment } from '../store/model.ts';
import type { Scheduler } from '../scheduler.ts';
import { createBudgetLimits } from './budget.ts';
import { type ContextDeps, createIdentity, RequestContext, type RequestFacts } from './context.ts';
import { createDocuments, type GraphqlRequest, type ValidDocument } from './documents/documents.ts';
import { collectFields, findFragments } from './documents/limits.ts';
import { checkEvent, type OwnArguments, readOwnArguments } from './documents/own-arguments.ts';
import type { TrustedDocuments } from './documents/trusted-documents.ts';
import {
  createErrorCounter,
  type ErrorCounter,
  errorsMax,
  isRefusal,
  refuseRequest,
  RequestError,
  toErrors,
  toFieldErrors,
} from './errors.ts';
import { refuseKey } from './once.ts';
import { createSchema } from './schema/schema.ts';

/** An operation that was parsed, is within the limits and is valid, so that it can run. */
export interface Operation
  extends
    Omit<ValidDocument, 'shared'>,
    Pick<GraphqlRequest, 'operationName' | 'variables' | 'once'> {
  readonly type: `${OperationTypeNode}`;
  /** The name in the document; undefined for an operation without one. */
  readonly name: string | undefined;
  /** True for a query that leaves nothing behind: one with a hash may register its document. */
  readonly isPure: boolean;
  /** Of a subscription. */
  readonly own?: OwnArguments | undefined;
}

/** The result of an operation as JSON. */
export interface Executed {
  readonly json: string;
  /** The codes of the errors in the result. */
  readonly codes: readonly GraphqlCode[];
  /** True if equal requests have this result until something is written. */
  readonly isRepeatable: boolean;
}

/** An active subscription. */
export interface Subscription {
  /** `return()` ends the source at once; `next()` rejects with the error of the source. */
  readonly events: AsyncIterator<Announced>;
  /**
   * Executes one event, within limits of its own, and returns its JSON. Never rejects. `author`: of
   * the comment, if it is asked for.
   */
  readonly toJson: (event: Comment, author?: Author) => Promise<string>;
}

export interface EngineDeps extends ContextDeps {
  readonly config: Config;
  /** Accounts for the memory of results and events while they are made. */
  readonly pool: MemoryPool;
  /** Operations are prepared and executed in its turns. */
  readonly scheduler: Scheduler;
  /** If given, only these documents can run. */
  readonly trustedDocuments?: TrustedDocuments | undefined;
  readonly metrics?: GraphqlMetrics | undefined;
}

export type Engine = ReturnType<typeof createEngine>;

export function createEngine(deps: EngineDeps) {
  const { config, log, metrics, scheduler, hasOwners, hasReaders } = deps;
  const schema = createSchema();
  const findDocument = createDocuments(schema, config, deps.trustedDocuments);
  const errors = createErrorCounter(metrics, log);
  const { toArgs, run, runEvent } = createExecution(schema, errors);
  const requestLimits = createBudgetLimits(deps, deps.pool);
  const eventLimits = createBudgetLimits(deps);
  const { authorize, readerOf } = createIdentity(deps);

  return {
    schema,
    scheduler,
    hasOwners,
    hasReaders,
    countRefusal: errors.countRefusal,
    refuse: errors.refuse,
    /** Creates the context of one request or batch; the caller releases it. */
    createContext: (facts: RequestFacts) => new RequestContext(deps, facts, requestLimits),
    /** Throws a RequestError, or an AppError about its key, for a request that cannot run. */
    prepare(request: GraphqlRequest, requestId: string): Operation {
      const startedAt = performance.now();
      try {
        return toOperation(schema, request, findDocument(request));
      } catch (error) {
        metrics?.operation('unknown', 'refused', performance.now() - startedAt);
        if (error instanceof AppError && error.code === 'invalid_idempotency_key') throw error;
        throw new RequestError(toErrors(error, log, requestId));
      }
    },
    authorize,
    readerOf,
    /**
     * Executes a query or mutation. Rejects with a RequestError if it has no data, with an AppError
     * for a request without a token, and with `overloaded`.
     */
    async execute(operation: Operation, context: RequestContext): Promise<Executed> {
      const startedAt = performance.now();
      // Awaited only where needed: what runs after an `await` is not in the turn any more.
      const authorized = authorize(context.facts.viewer);
      const account = isPromise(authorized) ? await authorized : authorized;
      context.reader = readerOf(account);
      let outcome: Outcome = 'refused';
      context.once = operation.once;
      try {
        const executing = run(operation, context);
        const executed = isPromise(executing) ? await executing : executing;
        outcome = executed.codes.length > 0 ? 'error' : 'ok';
        return executed;
      } finally {
        metrics?.operation(operation.type, outcome, performance.now() - startedAt);
      }
    },
    /** Starts a subscription. Rejects with a RequestError if it is refused. */
    async subscribe(operation: Operation, facts: RequestFacts): Promise<Subscription> {
      const openContext = () => new RequestContext(deps, facts, eventLimits);
      const source = await createSourceEventStream(toArgs(operation, openContext()));
      if (!(Symbol.asyncIterator in source)) {
        throw new RequestError(toFieldErrors(source.errors ?? [], facts.requestId, log));
      }
      const toJson = (event: Comment, author?: Author) => {
        const context = openContext();
        context.author = author;
        return runEvent(operation, context, event);
      };
      // The schema has one subscription, whose source yields comments with their places.
      return { events: source[Symbol.asyncIterator]() as AsyncIterator<Announced>, toJson };
    },
  };
}

const executionOptions = { maxCoercionErrors: errorsMax };

/** Runs graphql-js within the limits of a context. */
function createExecution(schema: GraphQLSchema, { count, refuse }: ErrorCounter) {
  const toArgs = (
    { document, operationName, variables: variableValues }: Operation,
    contextValue: RequestContext,
    rootValue?: unknown,
  ): ExecutionArgs => {
    // Written out: a spread of some of them takes as long as a twentieth of an event.
    return {
      schema,
      document,
      operationName,
      rootValue,
      contextValue,
      variableValues,
      options: executionOptions,
      hideSuggestions: true,
    };
  };

  /** `event`: the root value of a subscription. */
  const run = (
    operation: Operation,
    context: RequestContext,
    event?: unknown,
  ): MaybePromise<Executed> => {
    return andThen(execute(toArgs(operation, context, event)), (executed) => {
      // Beyond the limits the partial result is dropped: all of it is refused.
      context.check();
      const result = withPending(toResult(executed, context), context);
      // In one call, right after the execution: a result that waited for its turn to become JSON
      // would be copied by the collector meanwhile. The limits bound the time that it takes.
      const json = JSON.stringify(result);
      context.chargeJson(Buffer.byteLength(json));
      const codes = result.errors?.map(({ extensions }) => extensions.code) ?? [];
      count(codes);
      const isRepeatable = operation.isPure && codes.length === 0 && !context.isPersonal;
      return { json, codes, isRepeatable };
    });
  };
  /** The result of an event; never rejects. */
  const runEvent = async (
    operation: Operation,
    context: RequestContext,
    event: Comment,
  ): Promise<string> => {
    try {
      return (await run(operation, context, event)).json;
    } catch (error) {
      return JSON.stringify({ errors: refuse(error, context.facts.requestId) });
    }
  };
  return { toArgs, run, runEvent };
}

/** The members are in the order of graphql-js. Throws a RequestError if there is no data. */
function toResult({ data, errors }: ExecutionResult, context: RequestContext) {
  if (errors === undefined) return { data };
  const clientErrors = toFieldErrors(errors, context.facts.requestId, context.deps.log);
  // If for that every root field is null, the operation is refused as a whole.
  const isEmpty = Object.values(data ?? {}).every((value) => value === null);
  if (data === undefined || (isEmpty && clientErrors.every(isRefusal))) {
    throw new RequestError(clientErrors);
  }
  return { errors: clientErrors, data };
}

/** Says of comments that they wait: until then their writers do not find them (R48). */
function withPending<R extends object>(result: R, { pendingComments: ids }: RequestContext) {
  return ids.length === 0 ? result : { ...result, extensions: { pendingComments: ids.splice(0) } };
}

function toOperation(
  schema: GraphQLSchema,
  request: GraphqlRequest,
  { document, shared }: ValidDocument,
): Operation {
  const { operationName, variables, documentHash, lastEventId } = request;
  const definition = getOperationAST(document, operationName);
  if (definition == null) {
    const message = 'The request must name one operation of its document.';
    throw refuseRequest('BAD_USER_INPUT', message);
  }
  if (request.hasTooManyVariables === true) {
    throw refuseRequest('PAYLOAD_TOO_LARGE', 'The variables hold too many values.');
  }
  if (request.hasInvalidKey === true) throw invalidKey();
  const { operation: type, name } = definition;
  const operation: Operation = {
    document,
    type,
    name: name?.value,
    operationName,
    variables,
    isPure: type === OperationTypeNode.QUERY && documentHash === undefined,
  };
  if (type === OperationTypeNode.SUBSCRIPTION) {
    checkEvent(definition, document);
    const asked = { operation: definition, variables, lastEventId };
    const own = readOwnArguments(schema, document, asked);
    if (own === undefined) return operation;
    const declaring = getOperationAST(shared, operationName) ?? definition;
    return { ...operation, document: shared, variables: toDeclared(declaring, variables), own };
  }
  if (request.once === undefined || type !== OperationTypeNode.MUTATION) return operation;
  if (collectFields([definition.selectionSet], findFragments(document)).size > 1) {
    throw refuseKey('the operation must have one mutation');
  }
  return { ...operation, once: request.once };
}

/** The variables that the document of the group declares: a subscription keeps no others. */
function toDeclared(
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: GraphqlRequest['variables'] = {},
): GraphqlRequest['variables'] {
  const declared = new Set(variableDefinitions.map(({ variable }) => variable.name.value));
  return Object.fromEntries(Object.entries(variables).filter(([name]) => declared.has(name)));
}
