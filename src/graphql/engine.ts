/**
 * The GraphQL engine, independent of HTTP and WebSocket. A decoded request is prepared (parsed,
 * checked against the limits, validated), then executed or subscribed to. In results, errors have a
 * code (R24), internal errors are masked, and their number and length are limited.
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
import type { JsonBody } from '../http/response-cache.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool } from '../memory-pool.ts';
import { Budget } from './budget.ts';
import { type ContextDeps, GraphqlContext, type RequestScope } from './context.ts';
import { createDocuments } from './documents/documents.ts';
import {
  errorsMax,
  type GraphqlError,
  isOutage,
  refuseRequest,
  RequestError,
  toFieldErrors,
} from './errors.ts';
import { createFieldCounts } from './schema/fields.ts';
import {
  aliasesMax,
  directivesMax,
  type DocumentLimits,
  type DocumentMeasures,
  hasTooManyValues,
  measureIntrospection,
} from './documents/limits.ts';
import {
  type DocumentSource,
  findPersisted,
  findTrusted,
  type TrustedDocuments,
} from './documents/persisted.ts';
import { type GraphqlResult, isEmpty, outcomeOf } from './result.ts';
import { createSchema } from './schema/schema.ts';
import { serializeParts } from './parts.ts';
import { serialize, type SerializedResult, toBudgetRefusal } from './serialize.ts';
import { createScheduler, type Scheduler } from '../scheduler.ts';
import type { GraphqlMetrics } from '../watch/service-metrics.ts';

/** A decoded request for one operation: each member has its type or is absent. */
export interface GraphqlRequest extends DocumentSource {
  readonly operationName?: string | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
}

/** A request that was parsed, is within the limits and is valid, so that it can run. */
export interface ReadyOperation {
  readonly kind: 'ready';
  readonly operation: `${OperationTypeNode}`;
  readonly document: DocumentNode;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  readonly measures: DocumentMeasures;
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
      /**
       * Executes one event and returns its JSON, within the subscription's budget. The caller
       * releases that when the JSON was delivered. Throws or rejects as `Engine.execute` does.
       */
      readonly toJson: (event: unknown) => MaybePromise<JsonBody>;
    }
  | RefusedRequest;

export interface Engine {
  readonly schema: GraphQLSchema;
  /** Shared by all long tasks. */
  readonly scheduler: Scheduler;
  /** Creates the budget of one request, batch or subscription; the caller releases it. */
  createBudget(): Budget;
  /** Never throws because of what a client sent. */
  prepare(request: GraphqlRequest): Prepared;
  /**
   * Executes a query or mutation, and serialises its result within the same budget; without a
   * promise if every resolver returns values and the result is small. `showCost` adds
   * `extensions.cost`. Throws, or rejects with, `overloaded` if all requests hold too much memory.
   */
  execute(
    operation: ReadyOperation,
    scope: RequestScope,
    showCost?: boolean,
  ): MaybePromise<SerializedResult>;
  /** Starts a subscription, or rejects. The budget of `scope` is its own, renewed per event. */
  subscribe(operation: ReadyOperation, scope: RequestScope): Promise<Subscription>;
}

export interface EngineDeps extends ContextDeps {
  readonly config: DocumentLimits & Pick<Config, 'graphqlObjectsMax' | 'waitingBytesMax'>;
  /** Accounts for the memory of results and events while they are made. */
  readonly pool: MemoryPool;
  /** If given, only these documents can run. */
  readonly trustedDocuments?: TrustedDocuments | undefined;
  readonly metrics?: GraphqlMetrics | undefined;
}

/** The limit for one result, batch or event, unless a quarter of the memory for all is less. */
const resultBytesMax = 16 * 1024 * 1024;

export function createEngine(deps: EngineDeps): Engine {
  const { config, pool, metrics } = deps;
  const schema = createSchema();
  const scheduler = createScheduler();
  const execution = createExecution(deps, schema, scheduler);
  const limits = {
    objectsMax: config.graphqlObjectsMax,
    bytesMax: Math.min(resultBytesMax, Math.floor(config.waitingBytesMax / 4)),
    pool,
  };

  return {
    schema,
    scheduler,
    createBudget: () => new Budget(limits),
    prepare: createPrepare(schema, deps),
    execute(operation, scope, showCost = false) {
      const context = execution.createContext(scope);
      const run = (): MaybePromise<GraphqlResult> => execution.run(operation, context);
      const toExtensions = () => (showCost ? toCost(operation, scope, config) : undefined);
      const { budget } = scope;
      const startedAt = performance.now();
      return andThen(run(), (result) => {
        metrics?.operation(operation.operation, outcomeOf(result), performance.now() - startedAt);
        const { parts } = context;
        if (parts !== undefined) {
          return serializeParts(result, { parts, run, toExtensions, budget, scheduler });
        }
        const extensions = toExtensions();
        return serialize(extensions ? { ...result, extensions } : result, budget, scheduler);
      });
    },
    async subscribe(operation, scope) {
      const source = await execution.openSource(operation, scope);
      if ('kind' in source) return source;
      return {
        kind: 'stream',
        events: source[Symbol.asyncIterator](),
        toJson(event) {
          scope.budget.renew();
          const context = execution.createContext(scope);
          return andThen(execution.run(operation, context, event), (result) =>
            andThen(serialize(result, scope.budget, scheduler), ({ json }) => json),
          );
        },
      };
    },
  };
}

/** Runs graphql-js within the budget of an operation. */
function createExecution(deps: EngineDeps, schema: GraphQLSchema, scheduler: Scheduler) {
  const tools = { scheduler, countFields: createFieldCounts() };
  const createContext = (scope: RequestScope): GraphqlContext =>
    new GraphqlContext(deps, scope, tools);

  const toArgs = (
    operation: ReadyOperation,
    contextValue: GraphqlContext,
    rootValue?: unknown,
  ): ExecutionArgs => {
    return {
      schema,
      document: operation.document,
      rootValue,
      operationName: operation.operationName,
      variableValues: operation.variables,
      contextValue,
      options: { maxCoercionErrors: errorsMax },
      hideSuggestions: true,
    };
  };
  const toResult = ({ data, errors }: ExecutionResult, scope: RequestScope): GraphqlResult => {
    const { budget, requestId } = scope;
    // A partial result is dropped: the operation is refused as a whole.
    if (budget.refusal !== undefined) return toBudgetRefusal(budget.refusal);
    if (errors === undefined) return data === undefined ? {} : { data };
    const found = toFieldErrors(errors, { requestId, log: deps.log });
    // If the store failed and every root field is null, the operation is refused as a whole too.
    if (data === undefined || (isEmpty(data) && found.every(isOutage))) return { errors: found };
    return { errors: found, data };
  };

  return {
    createContext,
    /** `event`: the root value, for an event of a subscription. */
    run(
      operation: ReadyOperation,
      context: GraphqlContext,
      event?: unknown,
    ): MaybePromise<GraphqlResult> {
      const { scope } = context;
      const { objects, bytes } = measureIntrospection(operation.measures);
      if (!scope.budget.covers(objects, bytes)) return toBudgetRefusal(scope.budget.refusal);
      const executed = execute(toArgs(operation, context, event));
      return andThen(executed, (result) => toResult(result, scope));
    },
    /** Rejects if the topic behind the subscription fails. */
    async openSource(
      operation: ReadyOperation,
      scope: RequestScope,
    ): Promise<AsyncIterable<unknown> | RefusedRequest> {
      const source = await createSourceEventStream(toArgs(operation, createContext(scope)));
      if (Symbol.asyncIterator in source) return source;
      return { kind: 'refused', errors: toResult(source, scope).errors ?? [] };
    },
  };
}

/** Creates `Engine.prepare`: text and variables → an operation that can run. */
function createPrepare(
  schema: GraphQLSchema,
  { config, trustedDocuments, metrics }: EngineDeps,
): Engine['prepare'] {
  const readDocument = createDocuments(schema, config);
  const findText = trustedDocuments ? findTrusted(trustedDocuments) : findPersisted();

  const toReady = (request: GraphqlRequest): ReadyOperation => {
    const { operationName, variables } = request;
    const { document, measures } = readDocument(findText(request));
    const definition = getOperationAST(document, operationName);
    if (definition == null) {
      throw refuseRequest('BAD_USER_INPUT', 'The request must name one operation of its document.');
    }
    // graphql-js repeats the input in each error about it: 60,000 members take it a second.
    if (hasTooManyValues(variables)) {
      throw refuseRequest('PAYLOAD_TOO_LARGE', 'The variables hold too many values.');
    }
    return {
      kind: 'ready',
      operation: definition.operation,
      document,
      operationName,
      variables: toKept(definition, variables),
      measures,
    };
  };
  return (request) => {
    const startedAt = performance.now();
    try {
      return toReady(request);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      metrics?.operation('unknown', 'refused', performance.now() - startedAt);
      return { kind: 'refused', errors: error.errors };
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

/** The cost of an operation and its limits. The operations of a batch share the objects (R26). */
function toCost(
  { measures: { depth, aliases, directives } }: ReadyOperation,
  { budget }: RequestScope,
  { graphqlObjectsMax, graphqlDepthMax }: EngineDeps['config'],
): Readonly<Record<string, unknown>> {
  return {
    cost: {
      objects: { spent: budget.spent, max: graphqlObjectsMax },
      depth: { spent: depth, max: graphqlDepthMax },
      aliases: { spent: aliases, max: aliasesMax },
      directives: { spent: directives, max: directivesMax },
    },
  };
}
