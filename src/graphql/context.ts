/** What resolvers reach: one context for each operation, and nothing beyond it. */

import type { CommentRules } from '../domain/comments.ts';
import type { Topic } from '../domain/topic.ts';
import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Account, Comment } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import type { Budget } from './budget.ts';
import { createLoaders, type Loaders } from './loaders.ts';

/** What every operation of the service has in common. */
export interface ContextDeps {
  readonly store: Store;
  /** Adding a comment: stores it, then announces it. */
  readonly comments: CommentRules;
  /** Comments as they are announced, for the subscription. */
  readonly commentAdded: Pick<Topic<Comment>, 'subscribe'>;
  readonly log: Log;
  /** True where whatever changes data needs a token (R23). */
  readonly writesNeedToken: boolean;
}

/** What the request around an operation brings: the same for all operations of a batch. */
export interface RequestScope {
  readonly requestId: string;
  /** The account of the request's token, undefined without one. Throws `invalid_token`. */
  readonly viewer: () => MaybePromise<Account | undefined>;
  /** What the request may still cost; `engine.createBudget()` makes one. */
  readonly budget: Budget;
}

export interface GraphqlContext extends ContextDeps, RequestScope {
  /** New for each operation: a query after a mutation reads what the mutation wrote. */
  readonly loaders: Loaders;
  /** Charges the budget for `count` objects of this operation. Throws a BudgetError. */
  charge(count: number): void;
}

/** `objectCost`: what one object costs in this operation. */
export function createContext(
  deps: ContextDeps,
  scope: RequestScope,
  objectCost: number,
): GraphqlContext {
  return new OperationContext(deps, scope, objectCost);
}

/** A class, because one is made for every operation. Loaders are made for those that read. */
class OperationContext implements GraphqlContext {
  readonly store: Store;
  readonly comments: CommentRules;
  readonly commentAdded: ContextDeps['commentAdded'];
  readonly log: Log;
  readonly writesNeedToken: boolean;
  readonly requestId: string;
  readonly viewer: RequestScope['viewer'];
  readonly budget: Budget;
  readonly #objectCost: number;
  #loaders: Loaders | undefined;

  constructor(deps: ContextDeps, { requestId, viewer, budget }: RequestScope, objectCost: number) {
    this.store = deps.store;
    this.comments = deps.comments;
    this.commentAdded = deps.commentAdded;
    this.log = deps.log;
    this.writesNeedToken = deps.writesNeedToken;
    this.requestId = requestId;
    this.viewer = viewer;
    this.budget = budget;
    this.#objectCost = objectCost;
  }

  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.store));
  }

  charge(count: number): void {
    this.budget.charge(count * this.#objectCost);
  }
}
