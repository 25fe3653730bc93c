/** Lists of the store as GraphQL needs them: all of a range, or refused before they are read. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { List, Page, Range } from '../../store/list.ts';
import type { Budget } from '../budget.ts';
import type { Scheduler } from '../../scheduler.ts';

/** What an operation reads with. */
export interface ReadTools {
  readonly budget: Pick<Budget, 'left' | 'refuseList' | 'holdRecords'>;
  readonly scheduler: Scheduler;
  /** False where the store makes each record anew: those of a request take memory of their own. */
  readonly keepsObjects: boolean;
}

/**
 * The records of the range, fewer than its limit only at the end of the list; at once where a store
 * gives them so and they are one page. Throws, or rejects with, a BudgetError where there is no
 * limit and the list has more than the budget has left: then no more than a page is read.
 */
export function readList<T>(
  list: List<T>,
  tools: ReadTools,
  range: Range = {},
): MaybePromise<readonly T[]> {
  return andThen(list.read(range), (page) =>
    page.next === undefined || page.records.length === range.limit
      ? page.records
      : readOn(list, page, { ...tools, limit: range.limit }),
  );
}

async function readOn<T>(
  list: List<T>,
  first: Page<T>,
  { budget, scheduler, keepsObjects, limit }: ReadTools & Pick<Range, 'limit'>,
): Promise<readonly T[]> {
  // To count takes some milliseconds, too: not in the same turn for many operations.
  await scheduler.yield();
  if (limit === undefined && (await list.exceeds(budget.left))) budget.refuseList();
  const records: T[] = [];
  const add = (page: Page<T>): void => {
    records.push(...page.records);
    if (!keepsObjects) budget.holdRecords(page.records.reduce(addLengths, 0));
  };
  add(first);
  // Long records make a page of the store shorter than the limit.
  const isFull = (): boolean => limit !== undefined && records.length >= limit;
  for (let page = first; page.next !== undefined && !isFull(); add(page)) {
    await scheduler.yield();
    page = await page.next();
    if (records.length > budget.left) budget.refuseList();
  }
  return records.slice(0, limit);
}

/** The length of the texts of a record, beside those before it. */
function addLengths(sum: number, record: unknown): number {
  let length = sum;
  for (const value of Object.values(record ?? {})) {
    if (typeof value === 'string') length += value.length;
  }
  return length;
}
