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
  // Nothing more is read for a request that was refused.
  tools.budget.holdRecords(0);
  return andThen(list.read(range), (page) => {
    hold(page.records, tools);
    return page.next === undefined || page.records.length === range.limit
      ? page.records
      : readOn(list, page, { ...tools, limit: range.limit });
  });
}

/** Counts records that were read for this request alone. Throws a BudgetError. */
export function hold(records: readonly unknown[], { budget, keepsObjects }: ReadTools): void {
  if (!keepsObjects) budget.holdRecords(records.reduce(addLengths, 0));
}

async function readOn<T>(
  list: List<T>,
  first: Page<T>,
  { limit, ...tools }: ReadTools & Pick<Range, 'limit'>,
): Promise<readonly T[]> {
  // To count takes some milliseconds, too: not in the same turn for many operations.
  await tools.scheduler.yield();
  if (limit === undefined && (await list.exceeds(tools.budget.left))) tools.budget.refuseList();
  const records = [...first.records];
  // Long records make a page of the store shorter than the limit.
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

/** The length of the texts of a record, beside those before it. */
function addLengths(sum: number, record: unknown): number {
  const values = record as Readonly<Record<string, unknown>>; // every record is an object
  let length = sum;
  for (const name in values) {
    if (typeof values[name] === 'string') length += values[name].length;
  }
  return length;
}
