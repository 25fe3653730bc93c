/** What is told of GraphQL operations and subscribers to whom counts them. */

export interface GraphqlWatch {
  /**
   * An operation has run; a subscription has run when it has begun. `unknown` is the type of what
   * is no valid document; `refused` is what did not run, `error` what has errors beside its data.
   */
  operation(type: OperationType, outcome: Outcome, milliseconds: number): void;
  /** An answer was given again: nothing ran. */
  keptAnswer(): void;
  /** The server has ended a subscription, or the socket or stream that it is on. */
  dropped(reason: DropReason): void;
}

export type OperationType = 'query' | 'mutation' | 'subscription' | 'unknown';
export type Outcome = 'ok' | 'error' | 'refused';
/**
 * `behind`: the client does not read; `overrun`: events came faster than they could be made;
 * `memory`: others needed the room of what waited for the client; `failed`: an internal error.
 */
export type DropReason = 'behind' | 'overrun' | 'memory' | 'failed';
