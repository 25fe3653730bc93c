/**
 * The GraphQL engine, independent of HTTP and WebSocket. A decoded request is prepared (parsed,
 * checked against the limits, validated), then executed or subscribed to. Errors have a code (R24),
 * internal errors are masked, and their number and length are limited.
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
import { AppError, toStack } from '../errors.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool } from '../memory-pool.ts';
import type { GraphqlMetrics, Outcome } from '../watch/service-metrics.ts';
import { createScheduler } from '../scheduler.ts';
import {
  Budget,
  type ContextDeps,
  createFieldCounts,
  GraphqlContext,
  type RequestScope,
} from './context.ts';
import { createDocuments, type GraphqlRequest, type ValidDocument } from './documents/documents.ts';
import type { TrustedDocuments } from './documents/trusted-documents.ts';
import {
  errorsMax,
  type GraphqlError,
  isOutage,
  maskedError,
  refuseRequest,
  RequestError,
  toFieldErrors,
  toRefusal,
} from './errors.ts';
import { createSchema } from './schema/schema.ts';

/** A request that was parsed, is within the limits and is valid, so that it can run. */
export interface ReadyOperation
  extends ValidDocument, Pick<GraphqlRequest, 'operationName' | 'variables'> {
  readonly kind: 'ready';
  readonly operation: `${OperationTypeNode}`;
  /** True for a query that leaves nothing behind: one with a hash may be registered by it. */
  readonly isPure: boolean;
}

/** A request that cannot run, with at least one error. */
interface RefusedRequest {
  readonly kind: 'refused';
  readonly errors: readonly GraphqlError[];
}

export type Prepared = ReadyOperation | RefusedRequest;

/** The result of an operation. Without `data` it did not run. */
export interface GraphqlResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphqlError[];
}

/** A result and its JSON. If it exceeds the budget, both are a refusal. */
export interface SerializedResult {
  readonly result: GraphqlResult;
  readonly json: string;
  /** True if equal requests have this result until something is written. */
  readonly isRepeatable: boolean;
}

/** An active subscription, or the reason why there is none. */
export type Subscription =
  | {
      readonly kind: 'stream';
      /** `return()` ends the source at once; `next()` rejects with the error of the source. */
      readonly events: AsyncIterator<unknown>;
      /** Executes one event, within a budget of its own, and returns its JSON. Never rejects. */
      readonly toJson: (event: unknown) => MaybePromise<string>;
    }
  | RefusedRequest;

export interface EngineDeps extends ContextDeps {
  readonly config: Config;
  /** Accounts for the memory of results and events while they are made. */
  readonly pool: MemoryPool;
  /** If given, only these documents can run. */
  readonly trustedDocuments?: TrustedDocuments | undefined;
  readonly metrics?: GraphqlMetrics | undefined;
}

export type Engine = ReturnType<typeof createEngine>;

export function createEngine(deps: EngineDeps) {
  const { config, pool, metrics } = deps;
  const schema = createSchema();
  const { toArgs, run } = createExecution(deps, schema);

  /** Throws, or rejects, if every operation needs a token (R36) and this request has none. */
  const authorize = (viewer: RequestScope['viewer']): MaybePromise<void> => {
    if (!deps.readsNeedToken) return;
    return andThen(viewer(), (found) => {
      if (found !== undefined) return;
      throw new AppError('missing_token', 'This operation needs a bearer token.');
    });
  };

  return {
    schema,
    /** An operation waits for its turn here before it is executed. */
    scheduler: createScheduler(),
    authorize,
    /** Creates the budget of one request or batch; the caller releases it. */
    createBudget: () => new Budget(config, pool),
    prepare: createPrepare(schema, deps),
    /**
     * Executes a query or mutation, and serialises its result within the same budget; without a
     * promise if every resolver returns values. Throws, or rejects with, an AppError for a request
     * without a token, and `overloaded`.
     */
    execute(operation: ReadyOperation, scope: RequestScope): MaybePromise<SerializedResult> {
      const startedAt = performance.now();
      const running = andThen(authorize(scope.viewer), () => run(operation, scope));
      return andThen(running, (serialized) => {
        const { operation: type } = operation;
        metrics?.operation(type, outcomeOf(serialized.result), performance.now() - startedAt);
        const { refusal } = scope.budget;
        if (refusal?.code === 'overloaded') throw refusal;
        return serialized;
      });
    },
    /** Starts a subscription. Rejects if the source cannot be opened. */
    async subscribe(
      operation: ReadyOperation,
      scope: Omit<RequestScope, 'budget'>,
    ): Promise<Subscription> {
      const opening = { ...scope, budget: new Budget(config) };
      const source = await createSourceEventStream(toArgs(operation, opening));
      if (!(Symbol.asyncIterator in source)) {
        return { kind: 'refused', errors: toResult(source, scope.requestId, deps).errors ?? [] };
      }
      return {
        kind: 'stream',
        events: source[Symbol.asyncIterator](),
        async toJson(event) {
          return (await run(operation, { ...scope, budget: new Budget(config) }, event)).json;
        },
      };
    },
  };
}

/** Approximate memory of an object of an introspection result, in bytes. */
const introspectionObjectBytes = 128;

/** Runs graphql-js within the budget of an operation. */
function createExecution(deps: EngineDeps, schema: GraphQLSchema) {
  const countFields = createFieldCounts();
  /** `rootValue`: the event of a subscription. */
  const toArgs = (
    { document, operationName, variables: variableValues }: ReadyOperation,
    scope: RequestScope,
    rootValue?: unknown,
  ): ExecutionArgs => {
    const contextValue = new GraphqlContext(deps, scope, countFields);
    const options = { maxCoercionErrors: errorsMax };
    const values = { rootValue, contextValue, variableValues, options };
    return { schema, document, operationName, ...values, hideSuggestions: true };
  };
  const run = (
    operation: ReadyOperation,
    scope: RequestScope,
    event?: unknown,
  ): MaybePromise<SerializedResult> => {
    const { budget, requestId } = scope;
    const { introspectionObjects: objects, isPure } = operation;
    const tooMuch = budget.spend(objects, objects * introspectionObjectBytes);
    if (tooMuch !== undefined) return toRefused([toRefusal(tooMuch)]);
    return andThen(execute(toArgs(operation, scope, event)), (executed) => {
      // If the budget was exceeded, the partial result is dropped: all of it is refused.
      const isWhole = budget.refusal === undefined;
      return serialize(isWhole ? toResult(executed, requestId, deps) : {}, budget, isPure);
    });
  };
  return { toArgs, run };
}

function toResult(
  { data, errors }: ExecutionResult,
  requestId: string,
  { log }: EngineDeps,
): GraphqlResult {
  if (errors === undefined) return data === undefined ? {} : { data };
  const found = toFieldErrors(errors, { requestId, log });
  // If the store failed and every root field is null, the operation is refused as a whole.
  const isEmpty = Object.values(data ?? {}).every((value) => value === null);
  if (data === undefined || (isEmpty && found.every(isOutage))) return { errors: found };
  return { errors: found, data };
}

/**
 * Serialises in one call, right after the execution: a result that waited for its turn to become
 * JSON would be copied by the collector meanwhile. The budget bounds the time that it takes.
 */
function serialize(result: GraphqlResult, budget: Budget, isPure: boolean): SerializedResult {
  let { refusal } = budget;
  if (refusal === undefined) {
    const json = JSON.stringify(result);
    refusal = budget.spendJson(Buffer.byteLength(json));
    if (refusal === undefined) {
      return { result, json, isRepeatable: isPure && result.errors === undefined };
    }
  }
  return toRefused([toRefusal(refusal)]);
}

/** The result of a request that cannot run. */
export function toRefused(errors: readonly GraphqlError[]): SerializedResult {
  const result = { errors };
  return { result, json: JSON.stringify(result), isRepeatable: false };
}

/** For the metrics. */
function outcomeOf({ data, errors }: GraphqlResult): Outcome {
  if (errors === undefined) return 'ok';
  return data === undefined ? 'refused' : 'error';
}

/** Creates `prepare`: text and variables → an operation that can run. */
function createPrepare(
  schema: GraphQLSchema,
  { config, trustedDocuments, metrics, log }: EngineDeps,
) {
  const findDocument = createDocuments(schema, config, trustedDocuments);

  /** Never throws: internal errors are masked and logged. */
  return (request: GraphqlRequest): Prepared => {
    const startedAt = performance.now();
    try {
      const { operationName, variables, documentHash } = request;
      const { document, introspectionObjects } = findDocument(request);
      const definition = getOperationAST(document, operationName);
      if (definition == null) {
        const message = 'The request must name one operation of its document.';
        throw refuseRequest('BAD_USER_INPUT', message);
      }
      if (request.hasTooManyVariables === true) {
        throw refuseRequest('PAYLOAD_TOO_LARGE', 'The variables hold too many values.');
      }
      const { operation } = definition;
      // For a subscription, which is kept for long, only the declared variables are kept.
      const isKept = operation === OperationTypeNode.SUBSCRIPTION;
      return {
        kind: 'ready',
        operation,
        document,
        operationName,
        variables: isKept ? toDeclared(definition, variables) : variables,
        introspectionObjects,
        isPure: operation === OperationTypeNode.QUERY && documentHash === undefined,
      };
    } catch (error) {
      metrics?.operation('unknown', 'refused', performance.now() - startedAt);
      if (error instanceof RequestError) return { kind: 'refused', errors: error.errors };
      log('error', 'graphql request failed', { reason: toStack(error) });
      return { kind: 'refused', errors: [maskedError] };
    }
  };
}

function toDeclared(
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: GraphqlRequest['variables'] = {},
): GraphqlRequest['variables'] {
  const declared = new Set(variableDefinitions.map(({ variable }) => variable.name.value));
  return Object.fromEntries(Object.entries(variables).filter(([name]) => declared.has(name)));
}
