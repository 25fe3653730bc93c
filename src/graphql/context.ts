/** What resolvers reach: one context for each operation, and nothing beyond it. */

import type { AddComment } from '../domain/comments.ts';
import type { Topic } from '../domain/topic.ts';
import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { List, Range } from '../store/list.ts';
import type { Account, Comment } from '../store/model.ts';
import type { Records, Store } from '../store/store.ts';
import type { Budget } from './budget.ts';
import type { CountFields, Selection } from './schema/fields.ts';
import { Loaders } from './schema/loaders.ts';
import { readList, type ReadTools } from './schema/read-list.ts';
import { Slices } from './slices.ts';
import type { Scheduler } from '../scheduler.ts';

/** What all operations share. */
export interface ContextDeps {
  readonly store: Store;
  /** Adding a comment: stores it, then announces it. */
  readonly addComment: AddComment;
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
  /** Where an answer that may be kept is read from; the store where it is absent. */
  readonly records?: Records;
  /** What the request may still cost; the code that called `engine.createBudget()` releases it. */
  readonly budget: Budget;
}

/** What counts the fields of results and yields to other requests; for all operations. */
export interface ContextTools {
  readonly scheduler: Scheduler;
  readonly countFields: CountFields;
}

/** What a field of a result takes in memory beside a text of it, about. */
const fieldBytes = 32;

/** New for each operation: a query after a mutation in a batch reads what the mutation wrote. */
export class GraphqlContext {
  readonly deps: Omit<ContextDeps, 'store'>;
  readonly records: Records;
  readonly scope: RequestScope;
  readonly #tools: ContextTools;
  readonly #keepsObjects: boolean;
  #slices: Slices | undefined;
  #loaders: Loaders | undefined;

  constructor(deps: ContextDeps, scope: RequestScope, tools: ContextTools) {
    this.deps = deps;
    this.records = scope.records ?? deps.store;
    this.#keepsObjects = deps.store.keepsObjects;
    this.scope = scope;
    this.#tools = tools;
  }

  get loaders(): Loaders {
    return (this.#loaders ??= new Loaders(this.records, this.#readTools));
  }

  /** A range of a list. Throws, or rejects with, a BudgetError where it is too long. */
  readList<T>(list: List<T>, range: Range): MaybePromise<readonly T[]> {
    return readList(list, this.#readTools, range);
  }

  get #readTools(): ReadTools {
    const { scheduler } = this.#tools;
    return { budget: this.scope.budget, scheduler, keepsObjects: this.#keepsObjects };
  }

  /** Charges the budget for one object and what is selected of it. Throws a BudgetError. */
  chargeObject(selection: Selection): void {
    this.scope.budget.charge(1, this.#tools.countFields(selection) * fieldBytes);
  }

  /** The same for the objects of a list; returns the list to resolve in its place. */
  chargeList<T>(
    list: readonly T[] = [],
    selection: Selection,
  ): MaybePromise<readonly MaybePromise<T>[]> {
    const fields = list.length * this.#tools.countFields(selection);
    this.scope.budget.charge(list.length, fields * fieldBytes);
    return (this.#slices ??= new Slices(this.#tools.scheduler)).of(list, fields);
  }

  /** Charges the budget for a text, and returns it. Throws a BudgetError. */
  chargeText(text: string): string {
    // A short text is counted with its field.
    if (text.length > fieldBytes) this.scope.budget.charge(0, text.length);
    return text;
  }
}
