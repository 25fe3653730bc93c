/**
 * The GraphQL engine, without HTTP and without WebSocket: a decoded request is prepared (parsed,
 * limited, validated), then executed or subscribed to. What it gives back is ready for
 * `JSON.stringify`: errors carry a code (R24), are masked where they are ours, cut and bounded.
 */

import type { DocumentNode, GraphQLSchema, OperationTypeNode } from 'graphql';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Budget } from './budget.ts';
import type { RequestScope } from './context.ts';
import type { GraphqlError } from './errors.ts';

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
   * Subscriptions. `results` gives one result per event, with a budget of its own; its `return()`
   * ends the source at once. `next()` rejects with what the source rejects with.
   */
  subscribe(operation: ReadyOperation, scope: RequestScope): Promise<Subscription>;
}
