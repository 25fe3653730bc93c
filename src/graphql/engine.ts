/**
 * The GraphQL engine, without HTTP and without WebSocket: a decoded request is prepared (parsed,
 * limited, validated), then executed or subscribed to. Results are ready for
 * `JSON.stringify`: errors carry a code (R24), internal ones are masked, and their number and
 * length are bounded.
 */

import {
  createSourceEventStream,
  type DocumentNode,
  execute,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { Config } from '../config.ts';
import type { Answer } from '../http/answer-cache.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool } from '../memory-pool.ts';
import { Budget } from './budget.ts';
import { type ContextDeps, GraphqlContext, type RequestScope } from './context.ts';
import { createDocuments } from './documents/documents.ts';
import { errorsMax, type GraphqlError, toFieldErrors, toPlainError } from './errors.ts';
import { createFieldCounts } from './schema/fields.ts';
import {
  type DocumentLimits,
  type DocumentMeasures,
  hasTooManyValues,
} from './documents/limits.ts';
import { createDocumentTexts, type TrustedDocuments } from './documents/persisted.ts';
import type { GraphqlResult } from './result.ts';
import { createSchema } from './schema/schema.ts';
import { serialize, type Serialized, toBudgetRefusal } from './serialize.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';

/** One operation as a client asks for it, decoded: every member has its type or is absent. */
export interface GraphqlRequest {
  readonly query?: string | undefined;
  readonly operationName?: string | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** Parsed, within the limits and valid: it can run. */
export interface ReadyOperation {
  readonly kind: 'ready';
  readonly operation: `${OperationTypeNode}`;
  readonly document: DocumentNode;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  readonly measures: DocumentMeasures;
}

/** It cannot run. At least one error. */
export interface RefusedRequest {
  readonly kind: 'refused';
  readonly errors: readonly GraphqlError[];
}

export type Prepared = ReadyOperation | RefusedRequest;

/**
 * Executes one event and makes its JSON, within the budget of the subscription, which the
 * caller releases when the JSON is delivered. Throws or rejects as `Engine.execute` does.
 */
export type MakeEvent = () => MaybePromise<Answer>;

/** A subscription that runs, or the result that refuses it. */
export type Subscription =
  | { readonly kind: 'stream'; readonly events: AsyncIterableIterator<MakeEvent> }
  | { readonly kind: 'refused'; readonly result: GraphqlResult };

export interface Engine {
  readonly schema: GraphQLSchema;
  /** Shared by all long tasks. */
  readonly scheduler: Scheduler;
  /** A budget for one request, batch or subscription; the caller releases it. */
  createBudget(): Budget;
  /** Never throws for what a client sent. */
  prepare(request: GraphqlRequest): Prepared;
  /**
   * Queries and mutations. At once where every resolver answers at once and the result is
   * small. Throws, or rejects with, `overloaded` where all requests together hold too much.
   */
  execute(operation: ReadyOperation, scope: RequestScope): MaybePromise<GraphqlResult>;
  /** A result of `execute` as JSON, within the same budget. Throws or rejects as that does. */
  serialize(result: GraphqlResult, budget: Budget): MaybePromise<Serialized>;
  /**
   * Subscriptions. Each event has the whole budget of `scope`, which must be this subscription's
   * own; one beyond it is a result that says so. `return()` of the events ends the source at once,
   * and `next()` rejects with what the source rejects with.
   */
  subscribe(operation: ReadyOperation, scope: RequestScope): Promise<Subscription>;
}

export interface EngineDeps extends ContextDeps {
  readonly config: DocumentLimits & Pick<Config, 'graphqlObjectsMax' | 'waitingBytesMax'>;
  /** Holds answers and events while they are made. */
  readonly pool: MemoryPool;
  /** Where they are given, nothing else runs. */
  readonly trustedDocuments?: TrustedDocuments | undefined;
}

/** One answer, batch or event, where that is no more than a quarter of the memory for all. */
const answerBytesMax = 16 * 1024 * 1024;

export function createEngine(deps: EngineDeps): Engine {
  const { config, log } = deps;
  const schema = createSchema();
  const scheduler = createScheduler();
  const tools = { scheduler, countFields: createFieldCounts() };
  const limits = {
    objectsMax: config.graphqlObjectsMax,
    bytesMax: Math.min(answerBytesMax, Math.floor(config.waitingBytesMax / 4)),
    pool: deps.pool,
  };

  const toArgs = (operation: ReadyOperation, scope: RequestScope): ExecutionArgs => {
    return {
      schema,
      document: operation.document,
      operationName: operation.operationName,
      variableValues: operation.variables,
      contextValue: new GraphqlContext(deps, scope, tools),
      options: { maxCoercionErrors: errorsMax },
      hideSuggestions: true,
    };
  };
  const toResult = (result: ExecutionResult, scope: RequestScope): GraphqlResult => {
    const { budget, requestId } = scope;
    // A partial result is dropped: the operation is refused as a whole.
    if (budget.refusal !== undefined) return toBudgetRefusal(budget.refusal);
    if (result.errors === undefined) return result as Pick<GraphqlResult, 'data'>;
    const errors = toFieldErrors(result.errors, { requestId, log });
    return result.data === undefined ? { errors } : { errors, data: result.data };
  };

  return {
    schema,
    scheduler,
    createBudget: () => new Budget(limits),
    prepare: createPrepare(schema, deps),
    execute(operation, scope) {
      const { budget } = scope;
      const objects = objectsOfSchemaIn(operation.measures);
      if (!budget.covers(objects, objects * objectOfSchemaBytes)) {
        return toBudgetRefusal(budget.refusal);
      }
      return andThen(execute(toArgs(operation, scope)), (result) => toResult(result, scope));
    },
    serialize: (result, budget) => serialize(result, budget, scheduler),
    async subscribe(operation, scope) {
      try {
        const source = await createSourceEventStream(toArgs(operation, scope));
        if (!(Symbol.asyncIterator in source)) {
          return { kind: 'refused', result: toResult(source, scope) };
        }
        const make = (rootValue: unknown): MaybePromise<Answer> => {
          scope.budget.renew();
          const executed = execute({ ...toArgs(operation, scope), rootValue });
          const made = andThen(executed, (result) =>
            serialize(toResult(result, scope), scope.budget, scheduler),
          );
          return andThen(made, ({ json }) => json);
        };
        return { kind: 'stream', events: mapEvents(source, make) };
      } catch (error) {
        // graphql-js rethrows errors that are not GraphQLErrors.
        const errors = [new GraphQLError('', { originalError: toError(error) })];
        return { kind: 'refused', result: toResult({ errors }, scope) };
      }
    },
  };
}

/** Texts and variables → what can run. */
function createPrepare(
  schema: GraphQLSchema,
  { config, trustedDocuments }: EngineDeps,
): Engine['prepare'] {
  const documents = createDocuments(schema, config);
  const texts = createDocumentTexts(trustedDocuments);
  return (request) => {
    const found = texts.find(request);
    if (found.kind === 'missing') return { kind: 'refused', errors: [found.error] };
    const document = documents.read(found.text);
    if (document.kind === 'invalid') return { kind: 'refused', errors: document.errors };
    const chosen = chooseOperation(document.operations, request.operationName);
    if (typeof chosen === 'string') {
      return { kind: 'refused', errors: [toPlainError('BAD_USER_INPUT', chosen)] };
    }
    const { operationName, variables } = request;
    if (hasTooManyValues(variables)) return tooManyValues;
    return {
      kind: 'ready',
      operation: chosen.operation,
      document: document.document,
      operationName,
      variables: toKept(chosen, variables),
      measures: document.measures,
    };
  };
}

/** Of the variables of a subscription, which lasts, only those that it declares are kept. */
function toKept(
  { operation, variableDefinitions = [] }: OperationDefinitionNode,
  variables: GraphqlRequest['variables'],
): GraphqlRequest['variables'] {
  if (operation !== OperationTypeNode.SUBSCRIPTION || variables === undefined) return variables;
  const kept = new Map<string, unknown>();
  for (const { variable } of variableDefinitions) {
    const name = variable.name.value;
    if (Object.hasOwn(variables, name)) kept.set(name, variables[name]);
  }
  return Object.fromEntries(kept);
}

/** graphql-js shows an input whole in each error about it: 60,000 members take it a second. */
const tooManyValues: RefusedRequest = {
  kind: 'refused',
  errors: [toPlainError('PAYLOAD_TOO_LARGE', 'The variables hold too many values.')],
};

/** An answer about the schema, whole: so many objects … */
const objectsOfSchema = 500;
/** … of so many bytes. */
const objectOfSchemaBytes = 128;
/** GraphQL lets lists of the schema be asked for within each other so many times. */
const listsOfSchemaMax = 3;

/** Its resolvers are those of graphql-js: what aliases may multiply is charged in advance. */
function objectsOfSchemaIn({ introspections, aliases }: DocumentMeasures): number {
  return introspections * objectsOfSchema * (1 + aliases) ** listsOfSchemaMax;
}

/** The operation that is meant, or a sentence that says why there is none. */
function chooseOperation(
  operations: readonly OperationDefinitionNode[],
  name: string | undefined,
): OperationDefinitionNode | string {
  const [first] = operations;
  if (first === undefined) return 'The document has no operation.';
  if (name === undefined) {
    return operations.length === 1 ? first : 'The request must name one of its operations.';
  }
  const named = operations.find((operation) => operation.name?.value === name);
  return named ?? 'The document has no operation of this name.';
}

/** Events → how each is made. */
function mapEvents(
  source: AsyncIterable<unknown>,
  make: (event: unknown) => MaybePromise<Answer>,
): AsyncIterableIterator<MakeEvent> {
  const events = source[Symbol.asyncIterator]();
  const end = { value: undefined, done: true } as const;
  return {
    async next() {
      const event = await events.next();
      return event.done === true ? end : { value: () => make(event.value), done: false };
    },
    async return() {
      await events.return?.();
      return end;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
