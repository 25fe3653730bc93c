/** Reads lists of the store for GraphQL: the whole range, or an error before too much is read. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { List, Page, Range } from '../../store/list.ts';
import type { Budget } from '../budget.ts';
import type { Scheduler } from '../../scheduler.ts';

/** What reading needs from its operation. */
export interface ReadTools {
  readonly budget: Pick<Budget, 'left' | 'refuseList' | 'holdRecords'>;
  readonly scheduler: Scheduler;
  /** False if the store creates records anew for each read: they then count for the request. */
  readonly keepsObjects: boolean;
}

/**
 * Returns the records of the range: as many as its limit, or all that there are. Returns a value if
 * the store does and one page is enough. Throws, or rejects with, a BudgetError if there is no
 * limit and the list exceeds the budget; then at most one page was read.
 */
export function readList<T>(
  list: List<T>,
  tools: ReadTools,
  range: Range = {},
): MaybePromise<readonly T[]> {
  // Throws if the request was already refused, so that nothing more is read.
  tools.budget.holdRecords(0);
  return andThen(list.read(range), (page) => {
    hold(page.records, tools);
    return page.next === undefined || page.records.length === range.limit
      ? page.records
      : readOn(list, page, { ...tools, limit: range.limit });
  });
}

/** Charges records that were read for this request alone. Throws a BudgetError. */
export function hold(records: readonly unknown[], { budget, keepsObjects }: ReadTools): void {
  if (!keepsObjects) budget.holdRecords(records.reduce(addLengths, 0));
}

async function readOn<T>(
  list: List<T>,
  first: Page<T>,
  { limit, ...tools }: ReadTools & Pick<Range, 'limit'>,
): Promise<readonly T[]> {
  // Counting takes milliseconds too, so operations of a batch must not count in the same iteration.
  await tools.scheduler.yield();
  if (limit === undefined && (await list.exceeds(tools.budget.left))) tools.budget.refuseList();
  const records = [...first.records];
  // The store ends a page early if its records are long.
  const isFull = (): boolean => limit !== undefined && records.length >= limit;
  for (let page = first; page.next !== undefined && !isFull();) {
    await tools.scheduler.yield();
    page = await page.next();
    records.push(...page.records);
    hold(page.records, tools);
    if (records.length > tools.budget.left) tools.budget.refuseList();
  }
  return records.slice(0, limit);
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
