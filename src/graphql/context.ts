/** What resolvers reach: one context for each operation, and nothing beyond it. */

import type { CommentRules } from '../domain/comments.ts';
import type { Topic } from '../domain/topic.ts';
import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Account, Comment } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import type { Budget } from './budget.ts';
import type { CountFields, Selection } from './schema/fields.ts';
import { createLoaders, type Loaders } from './schema/loaders.ts';
import { Slices } from './slices.ts';
import type { Turns } from './turns.ts';

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
  /** What the request may still cost, of `engine.createBudget()`; who made it releases it. */
  readonly budget: Budget;
}

export interface GraphqlContext extends ContextDeps, RequestScope {
  /** New for each operation: a query after a mutation reads what the mutation wrote. */
  readonly loaders: Loaders;
  /** Charges the budget for one object and what is selected of it. Throws a BudgetError. */
  chargeObject(selection: Selection): void;
  /** The same for the objects of a list; gives back what is to be resolved in its place. */
  chargeList<T>(list: readonly T[], selection: Selection): MaybePromise<readonly MaybePromise<T>[]>;
  /** Charges the budget for a text, and gives it back. Throws a BudgetError. */
  chargeText(text: string): string;
}

/** What counts and slices the results of all operations. */
export interface ContextTools {
  readonly turns: Turns;
  readonly countFields: CountFields;
}

export function createContext(
  deps: ContextDeps,
  scope: RequestScope,
  tools: ContextTools,
): GraphqlContext {
  return new OperationContext(deps, scope, tools);
}

/** What a field of a result takes in memory beside a text of it, about. */
const fieldBytes = 32;

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
  readonly #tools: ContextTools;
  #slices: Slices | undefined;
  #loaders: Loaders | undefined;

  constructor(deps: ContextDeps, { requestId, viewer, budget }: RequestScope, tools: ContextTools) {
    this.store = deps.store;
    this.comments = deps.comments;
    this.commentAdded = deps.commentAdded;
    this.log = deps.log;
    this.writesNeedToken = deps.writesNeedToken;
    this.requestId = requestId;
    this.viewer = viewer;
    this.budget = budget;
    this.#tools = tools;
  }

  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.store));
  }

  chargeObject(selection: Selection): void {
    this.budget.charge(1, this.#tools.countFields(selection) * fieldBytes);
  }

  chargeList<T>(
    list: readonly T[],
    selection: Selection,
  ): MaybePromise<readonly MaybePromise<T>[]> {
    const fields = list.length * this.#tools.countFields(selection);
    this.budget.charge(list.length, fields * fieldBytes);
    return (this.#slices ??= new Slices(this.#tools.turns)).of(list, fields);
  }

  chargeText(text: string): string {
    // A short one is paid for with its field.
    if (text.length > fieldBytes) this.budget.charge(0, text.length);
    return text;
  }
}
