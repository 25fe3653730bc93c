/**
 * The GraphQL engine, independent of HTTP and WebSocket. A decoded request is prepared (parsed,
 * checked against the limits, validated), then executed or subscribed to. Errors have a code (R24),
 * internal errors are masked, and their number and length are limited.
 */

import {
  createSourceEventStream,
  type DocumentNode,
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
import type { GraphqlMetrics } from '../watch/service-metrics.ts';
import { createScheduler, type Scheduler } from '../scheduler.ts';
import { Budget, toBudgetLimits } from './budget.ts';
import { type ContextDeps, GraphqlContext, type RequestScope } from './context.ts';
import { createDocuments } from './documents/documents.ts';
import type { DocumentLimits } from './documents/limits.ts';
import {
  type DocumentSource,
  findPersisted,
  findTrusted,
  type TrustedDocuments,
} from './documents/persisted.ts';
import {
  errorsMax,
  type GraphqlError,
  isOutage,
  refuseRequest,
  RequestError,
  toFieldErrors,
  toPlainError,
} from './errors.ts';
import {
  type GraphqlResult,
  isEmpty,
  outcomeOf,
  serialize,
  type SerializedResult,
} from './result.ts';
import { createFieldCounts } from './schema/fields.ts';
import { createSchema } from './schema/schema.ts';

/** A decoded request for one operation. */
export interface GraphqlRequest extends DocumentSource {
  readonly operationName?: string | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  /** True if the variables were dropped because they held too many values. */
  readonly hasTooManyVariables?: boolean;
}

/** A request that was parsed, is within the limits and is valid, so that it can run. */
export interface ReadyOperation {
  readonly kind: 'ready';
  readonly operation: `${OperationTypeNode}`;
  readonly document: DocumentNode;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  /** Objects that introspection adds to the result. */
  readonly introspectionObjects: number;
}

/** A request that cannot run, with at least one error. */
export interface RefusedRequest {
  readonly kind: 'refused';
  readonly errors: readonly GraphqlError[];
}

export type Prepared = ReadyOperation | RefusedRequest;

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

export interface Engine {
  readonly schema: GraphQLSchema;
  /** An operation waits for its turn here before it is executed. */
  readonly scheduler: Scheduler;
  /** Creates the budget of one request or batch; the caller releases it. */
  createBudget(): Budget;
  /** Throws, or rejects, if every operation needs a token (R36) and this request has none. */
  authorize(viewer: RequestScope['viewer']): MaybePromise<unknown>;
  /** Never throws: internal errors are masked and logged. */
  prepare(request: GraphqlRequest): Prepared;
  /**
   * Executes a query or mutation, and serialises its result within the same budget; without a
   * promise if every resolver returns values.
   */
  execute(operation: ReadyOperation, scope: RequestScope): MaybePromise<SerializedResult>;
  /** Starts a subscription. Rejects if the source cannot be opened. */
  subscribe(operation: ReadyOperation, scope: Omit<RequestScope, 'budget'>): Promise<Subscription>;
}

export interface EngineDeps extends ContextDeps {
  readonly config: DocumentLimits & Pick<Config, 'graphqlObjectsMax' | 'waitingBytesMax'>;
  /** Accounts for the memory of results and events while they are made. */
  readonly pool: MemoryPool;
  /** If given, only these documents can run. */
  readonly trustedDocuments?: TrustedDocuments | undefined;
  readonly metrics?: GraphqlMetrics | undefined;
}

/** Approximate memory of an object of an introspection result, in bytes. */
const introspectionObjectBytes = 128;

export function createEngine(deps: EngineDeps): Engine {
  const { config, pool, metrics } = deps;
  const schema = createSchema();
  const { toArgs, toResult, run } = createExecution(deps, schema);
  const limits = toBudgetLimits(config.graphqlObjectsMax, config.waitingBytesMax);

  const authorize: Engine['authorize'] = (viewer) =>
    deps.readsNeedToken
      ? andThen(viewer(), (found) => {
          if (found !== undefined) return;
          throw new AppError('missing_token', 'This operation needs a bearer token.');
        })
      : undefined;

  return {
    schema,
    scheduler: createScheduler(),
    createBudget: () => new Budget({ ...limits, pool }),
    authorize,
    prepare: createPrepare(schema, deps),
    execute(operation, scope) {
      const startedAt = performance.now();
      const running = andThen(authorize(scope.viewer), () => run(operation, scope));
      return andThen(running, (serialized) => {
        const outcome = outcomeOf(serialized.result);
        metrics?.operation(operation.operation, outcome, performance.now() - startedAt);
        return serialized;
      });
    },
    async subscribe(operation, scope) {
      const opening = { ...scope, budget: new Budget(limits) };
      const source = await createSourceEventStream(toArgs(operation, opening));
      if (!(Symbol.asyncIterator in source)) {
        return { kind: 'refused', errors: toResult(source, scope.requestId).errors ?? [] };
      }
      return {
        kind: 'stream',
        events: source[Symbol.asyncIterator](),
        async toJson(event) {
          return (await run(operation, { ...scope, budget: new Budget(limits) }, event)).json;
        },
      };
    },
  };
}

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
  const toResult = ({ data, errors }: ExecutionResult, requestId: string): GraphqlResult => {
    if (errors === undefined) return data === undefined ? {} : { data };
    const found = toFieldErrors(errors, { requestId, log: deps.log });
    // If the store failed and every root field is null, the operation is refused as a whole.
    if (data === undefined || (isEmpty(data) && found.every(isOutage))) return { errors: found };
    return { errors: found, data };
  };
  return {
    toArgs,
    toResult,
    run: (
      operation: ReadyOperation,
      scope: RequestScope,
      event?: unknown,
    ): MaybePromise<SerializedResult> => {
      const { budget, requestId } = scope;
      const { introspectionObjects: objects } = operation;
      if (!budget.covers(objects, objects * introspectionObjectBytes)) return serialize({}, budget);
      return andThen(execute(toArgs(operation, scope, event)), (executed) => {
        // If the budget was exceeded, the partial result is dropped: all of it is refused.
        const isWhole = budget.refusal === undefined;
        return serialize(isWhole ? toResult(executed, requestId) : {}, budget);
      });
    },
  };
}

/** Creates `Engine.prepare`: text and variables → an operation that can run. */
function createPrepare(
  schema: GraphQLSchema,
  { config, trustedDocuments, metrics, log }: EngineDeps,
): Engine['prepare'] {
  const readDocument = createDocuments(schema, config);
  const findText = trustedDocuments ? findTrusted(trustedDocuments) : findPersisted();

  const toReady = (request: GraphqlRequest): ReadyOperation => {
    const { operationName, variables } = request;
    const { document, introspectionObjects } = readDocument(findText(request));
    const definition = getOperationAST(document, operationName);
    if (definition == null) {
      throw refuseRequest('BAD_USER_INPUT', 'The request must name one operation of its document.');
    }
    if (request.hasTooManyVariables === true) {
      throw refuseRequest('PAYLOAD_TOO_LARGE', 'The variables hold too many values.');
    }
    return {
      kind: 'ready',
      operation: definition.operation,
      document,
      operationName,
      variables: toKept(definition, variables),
      introspectionObjects,
    };
  };
  return (request) => {
    const startedAt = performance.now();
    try {
      return toReady(request);
    } catch (error) {
      metrics?.operation('unknown', 'refused', performance.now() - startedAt);
      if (error instanceof RequestError) return { kind: 'refused', errors: error.errors };
      log('error', 'graphql request failed', { reason: toStack(error) });
      const masked = toPlainError('INTERNAL_SERVER_ERROR', 'Internal server error');
      return { kind: 'refused', errors: [masked] };
    }
  };
}

/** For a subscription, which is kept for long, only the declared variables are kept. */
function toKept(
  { operation, variableDefinitions = [] }: OperationDefinitionNode,
  variables: GraphqlRequest['variables'],
): GraphqlRequest['variables'] {
  if (operation !== OperationTypeNode.SUBSCRIPTION || variables === undefined) return variables;
  const declared = new Set(variableDefinitions.map(({ variable }) => variable.name.value));
  return Object.fromEntries(Object.entries(variables).filter(([name]) => declared.has(name)));
}
