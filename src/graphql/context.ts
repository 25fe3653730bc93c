/** What resolvers can use: one context for each operation. */

import type { AddComment } from '../domain/comments.ts';
import type { Topic } from '../domain/topic.ts';
import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { List, Range } from '../store/list.ts';
import type { Account, Comment } from '../store/model.ts';
import type { Records, Store } from '../store/store.ts';
import type { Budget } from './budget.ts';
import type { CountFields, Selection } from './schema/fields.ts';
import { readList, type ReadTools } from './schema/read-list.ts';

/** Dependencies that all operations share. */
export interface ContextDeps {
  readonly store: Store;
  /** Stores a comment, then publishes it. */
  readonly addComment: AddComment;
  /** The published comments, for the subscription. */
  readonly commentAdded: Pick<Topic<Comment>, 'subscribe'>;
  readonly log: Log;
  /** True if every mutation needs a token (R23). */
  readonly writesNeedToken: boolean;
  /** True if every operation needs a token (R36). */
  readonly readsNeedToken: boolean;
}

/** Values of the request; all operations of a batch share them. */
export interface RequestScope {
  readonly requestId: string;
  /** The account of the request's token; undefined without one. Throws `invalid_token`. */
  readonly viewer: () => MaybePromise<Account | undefined>;
  /** Where the records of a cacheable response are read; default: the store. */
  readonly records?: Records;
  /** The caller of `engine.createBudget()` releases it. */
  readonly budget: Budget;
}

/** Approximate memory of a field in a result, without a long text, in bytes. */
const fieldBytes = 48;

/** New for each operation: in a batch, a query must read what an earlier mutation wrote. */
export class GraphqlContext {
  readonly deps: Omit<ContextDeps, 'store'>;
  readonly records: Records;
  readonly scope: RequestScope;
  readonly #readTools: ReadTools;
  readonly #countFields: CountFields;

  constructor(deps: ContextDeps, scope: RequestScope, countFields: CountFields) {
    this.deps = deps;
    this.records = scope.records ?? deps.store;
    this.scope = scope;
    this.#readTools = { budget: scope.budget, keepsObjects: deps.store.keepsObjects };
    this.#countFields = countFields;
  }

  /** Reads a range of a list. Throws, or rejects with, a BudgetError if it is too long. */
  readList<T>(list: List<T>, range?: Range): MaybePromise<readonly T[]> {
    return readList(list, this.#readTools, range);
  }

  /** Charges the budget for one object and its selected fields. Throws a BudgetError. */
  chargeObject(selection: Selection): void {
    this.scope.budget.charge(1, this.#countFields(selection) * fieldBytes);
  }

  /** The same for the objects of a list, which it returns. */
  chargeList<T>(list: readonly T[] = [], selection: Selection): readonly T[] {
    const fields = list.length * this.#countFields(selection);
    this.scope.budget.charge(list.length, fields * fieldBytes);
    return list;
  }

  /** Charges the budget for a text, and returns it. Throws a BudgetError. */
  chargeText(text: string): string {
    // A short text is included in `fieldBytes`.
    this.scope.budget.charge(0, text.length > fieldBytes ? text.length : 0);
    return text;
  }
}
