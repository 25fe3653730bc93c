/** Reads lists of the store for GraphQL: the whole range, or an error once that is too much. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { List, Page, Range } from '../../store/list.ts';
import type { Budget } from '../budget.ts';

/** What reading needs from its operation. */
export interface ReadTools {
  readonly budget: Pick<Budget, 'objectsLeft' | 'charge' | 'chargeRecords'>;
  /** False if the store creates records anew for each read: they then count for the request. */
  readonly keepsObjects: boolean;
}

/**
 * Returns the records of the range: as many as its limit, or all that there are. Returns a value if
 * the store does. Throws, or rejects with, a BudgetError if they exceed the budget.
 */
export function readList<T>(
  list: List<T>,
  tools: ReadTools,
  range: Range = {},
): MaybePromise<readonly T[]> {
  const { budget } = tools;
  const { limit = Number.POSITIVE_INFINITY } = range;
  const readOn = (page: Page<T>, earlier: readonly T[]): MaybePromise<readonly T[]> => {
    chargeRecords(page.records, tools);
    const records = earlier.length === 0 ? page.records : [...earlier, ...page.records];
    if (records.length > budget.objectsLeft) budget.charge(records.length, 0);
    // The store ends a page early if its records are long.
    if (page.next === undefined || records.length >= limit) return records;
    return andThen(page.next(), (next) => readOn(next, records));
  };
  // Throws if the request was already refused, so that nothing more is read.
  budget.charge(0, 0);
  return andThen(list.read(range), (page) => {
    const records = readOn(page, []);
    return page.next === undefined ? records : andThen(records, (all) => all.slice(0, limit));
  });
}

/** Charges records that were read for this request alone. Throws a BudgetError. */
export function chargeRecords(
  records: readonly unknown[],
  { budget, keepsObjects }: ReadTools,
): void {
  if (!keepsObjects) budget.chargeRecords(records.reduce(addLengths, 0));
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
