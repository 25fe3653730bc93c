/** The interface through which GraphQL reports operations and subscriptions to the metrics. */

export interface GraphqlWatch {
  /**
   * An operation has run, or a subscription has started. `unknown` is the type of an invalid
   * document. `refused`: the operation did not run; `error`: the result has errors beside its data.
   */
  operation(type: OperationType, outcome: Outcome, milliseconds: number): void;
  /** Called when a response came from the cache. */
  cacheHit(): void;
  /** Called when the server ends a subscription, or its socket or stream. */
  dropped(reason: DropReason): void;
}

export type OperationType = 'query' | 'mutation' | 'subscription' | 'unknown';
export type Outcome = 'ok' | 'error' | 'refused';
/**
 * `behind`: the client does not read; `overrun`: events came faster than they could be executed;
 * `failed`: an internal error.
 */
export type DropReason = 'behind' | 'overrun' | 'failed';
