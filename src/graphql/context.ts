/** What resolvers can use: one context for each operation. */

import type { AddComment, Topic } from '../domain/comments.ts';
import type { Log } from '../log.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { List, Page, Range } from '../store/list.ts';
import type { Account, Comment } from '../store/model.ts';
import type { Records, Store } from '../store/store.ts';
import type { Budget } from './budget.ts';
import type { CountFields, Selection } from './schema/fields.ts';

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
  readonly #keepsObjects: boolean;
  readonly #countFields: CountFields;

  constructor(deps: ContextDeps, scope: RequestScope, countFields: CountFields) {
    this.deps = deps;
    this.records = scope.records ?? deps.store;
    this.scope = scope;
    this.#keepsObjects = deps.store.keepsObjects;
    this.#countFields = countFields;
  }

  /** Charges the budget for one object and its selected fields. Throws a BudgetError. */
  chargeObject(selection: Selection): void {
    this.scope.budget.charge(1, this.#countFields(selection) * fieldBytes);
  }

  /**
   * Returns the records of a range: as many as its limit, or all that there are. Charges the budget
   * for them and their selected fields. Throws, or rejects with, a BudgetError.
   */
  readList<T>(list: List<T>, selection: Selection, range: Range = {}): MaybePromise<readonly T[]> {
    const { budget } = this.scope;
    const { limit = Number.POSITIVE_INFINITY } = range;
    const bytesEach = this.#countFields(selection) * fieldBytes;
    const readOn = (page: Page<T>, earlier: readonly T[]): MaybePromise<readonly T[]> => {
      const room = limit - earlier.length;
      const records = page.records.length > room ? page.records.slice(0, room) : page.records;
      // A store that creates records anew for each read does so for this request alone.
      if (!this.#keepsObjects) budget.chargeRecords(records.reduce(addLengths, 0));
      budget.charge(records.length, records.length * bytesEach);
      const all = earlier.length === 0 ? records : [...earlier, ...records];
      // The store ends a page early if its records are long.
      if (page.next === undefined || all.length >= limit) return all;
      return andThen(page.next(), (next) => readOn(next, all));
    };
    // Throws if the request was already refused, so that nothing more is read.
    budget.charge(0, 0);
    return andThen(list.read(range), (page) => readOn(page, []));
  }

  /** Charges the budget for a text, and returns it. Throws a BudgetError. */
  chargeText(text: string): string {
    // A short text is included in `fieldBytes`.
    if (text.length > fieldBytes) this.scope.budget.charge(0, text.length);
    return text;
  }
}

/** Adds the length of the texts of a record to `sum`. */
function addLengths(sum: number, record: unknown): number {
  const values = record as Readonly<Record<string, unknown>>; // every record is an object
  let length = sum;
  for (const name in values) {
    if (typeof values[name] === 'string') length += values[name].length;
  }
  return length;
}
