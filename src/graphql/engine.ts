/**
 * The GraphQL engine, without HTTP and without WebSocket: a decoded request is prepared (parsed,
 * limited, validated), then executed or subscribed to. What it gives back is ready for
 * `JSON.stringify`: errors carry a code (R24), are masked where they are ours, cut and bounded.
 */

import {
  type DocumentNode,
  execute,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type OperationTypeNode,
  subscribe,
} from 'graphql';
import type { Config } from '../config.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import { type Budget, createBudget } from './budget.ts';
import { type ContextDeps, createContext, type RequestScope } from './context.ts';
import { createDocuments, type DocumentsConfig } from './documents.ts';
import { type GraphqlError, toBudgetError, toFieldErrors, toPlainError } from './errors.ts';
import { type DocumentMeasures, hasMoreValues } from './limits.ts';
import { createDocumentTexts, type TrustedDocuments } from './persisted.ts';
import { createSchema } from './schema.ts';

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

/** What an operation answers. Without `data`: it did not run. */
export interface GraphqlResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphqlError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** A subscription that runs, or the result that refuses it. */
export type Subscription =
  | { readonly kind: 'stream'; readonly results: AsyncIterableIterator<GraphqlResult> }
  | { readonly kind: 'refused'; readonly result: GraphqlResult };

export interface Engine {
  readonly schema: GraphQLSchema;
  /** A budget for one request, batch or subscription. */
  createBudget(): Budget;
  /** Never throws for what a client sent. */
  prepare(request: GraphqlRequest): Prepared;
  /** Queries and mutations. At once where every resolver answers at once; never rejects. */
  execute(operation: ReadyOperation, scope: RequestScope): MaybePromise<GraphqlResult>;
  /**
   * Subscriptions. `results` gives one result per event, each with the whole budget of `scope`,
   * which must be this subscription's own; its `return()` ends the source at once. `next()`
   * rejects with what the source rejects with.
   */
  subscribe(operation: ReadyOperation, scope: RequestScope): Promise<Subscription>;
}

export interface EngineDeps extends ContextDeps {
  readonly config: DocumentsConfig & Pick<Config, 'graphqlObjectsMax' | 'graphqlVariablesMax'>;
  /** Where they are given, nothing else runs. */
  readonly trustedDocuments?: TrustedDocuments | undefined;
}

export function createEngine(deps: EngineDeps): Engine {
  const { config, log } = deps;
  const schema = createSchema();
  const documents = createDocuments(schema, config);
  const texts = createDocumentTexts(config, deps.trustedDocuments);
  const errorsMax = config.graphqlErrorsMax;

  const toArgs = (operation: ReadyOperation, scope: RequestScope): ExecutionArgs => {
    return {
      schema,
      document: operation.document,
      operationName: operation.operationName,
      variableValues: operation.variables,
      contextValue: createContext(deps, scope, objectCostOf(operation.measures)),
      options: { maxCoercionErrors: errorsMax },
      hideSuggestions: true,
    };
  };
  const toResult = (
    result: ExecutionResult,
    { budget, requestId }: RequestScope,
  ): GraphqlResult => {
    // What ran until then is thrown away: the operation is refused as a whole.
    if (budget.exceeded) return { errors: [toBudgetError(budget.max)] };
    if (result.errors === undefined) return result as Pick<GraphqlResult, 'data'>;
    const errors = toFieldErrors(result.errors, { requestId, log, errorsMax });
    return result.data === undefined ? { errors } : { errors, data: result.data };
  };

  return {
    schema,
    createBudget: () => createBudget(config.graphqlObjectsMax),
    prepare(request) {
      const found = texts.find(request);
      if (found.kind === 'missing') return { kind: 'refused', errors: [found.error] };
      const document = documents.read(found.text);
      if (document.kind === 'invalid') return { kind: 'refused', errors: document.errors };
      const chosen = chooseOperation(document.operations, request.operationName);
      if (typeof chosen === 'string') {
        return { kind: 'refused', errors: [toPlainError('BAD_USER_INPUT', chosen)] };
      }
      const { operationName, variables } = request;
      if (hasMoreValues(variables, config.graphqlVariablesMax)) return tooManyValues;
      const { operation } = chosen;
      const { document: node, measures } = document;
      return { kind: 'ready', operation, document: node, operationName, variables, measures };
    },
    execute(operation, scope) {
      const { budget } = scope;
      if (!budget.covers(operation.measures.introspections * objectsOfSchema)) {
        return { errors: [toBudgetError(budget.max)] };
      }
      return andThen(execute(toArgs(operation, scope)), (result) => toResult(result, scope));
    },
    async subscribe(operation, scope) {
      try {
        const source = await subscribe(toArgs(operation, scope));
        if (!(Symbol.asyncIterator in source)) {
          return { kind: 'refused', result: toResult(source, scope) };
        }
        const results = mapResults(source, scope.budget, (result) => toResult(result, scope));
        return { kind: 'stream', results };
      } catch (error) {
        // graphql-js lets through what is no GraphQLError.
        const errors = [new GraphQLError('', { originalError: toError(error) })];
        return { kind: 'refused', result: toResult({ errors }, scope) };
      }
    },
  };
}

/** graphql-js shows an input whole in each error about it: 60,000 members take it a second. */
const tooManyValues: RefusedRequest = {
  kind: 'refused',
  errors: [toPlainError('PAYLOAD_TOO_LARGE', 'The variables hold too many values.')],
};

/** What an answer about the schema costs: about as much as so many records. */
const objectsOfSchema = 500;
/** By so much does each alias of a document make its objects dearer: they can have more fields. */
const costOfAlias = 0.3;

function objectCostOf({ aliases }: DocumentMeasures): number {
  return 1 + aliases * costOfAlias;
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

/** Each event has the whole budget. */
function mapResults(
  source: AsyncIterable<ExecutionResult>,
  budget: Budget,
  toResult: (result: ExecutionResult) => GraphqlResult,
): AsyncIterableIterator<GraphqlResult> {
  const events = source[Symbol.asyncIterator]();
  const end = { value: undefined, done: true } as const;
  return {
    async next() {
      budget.renew();
      const event = await events.next();
      return event.done === true ? end : { value: toResult(event.value), done: false };
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
