/** Lists of the store as GraphQL needs them: whole, or refused before they are read. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { List, Page } from '../../store/list.ts';
import type { Budget } from '../budget.ts';
import type { Scheduler } from '../scheduler.ts';

/** What an operation reads with. */
export interface ReadTools {
  readonly budget: Pick<Budget, 'left' | 'refuseList'>;
  readonly scheduler: Scheduler;
}

/**
 * All records, at once where a store gives them so and they are one page. Throws, or rejects with,
 * a BudgetError where they are more than the budget has left: then no more than a page is read.
 */
export function readWhole<T>(list: List<T>, tools: ReadTools): MaybePromise<readonly T[]> {
  return andThen(list.read(), (page) =>
    page.next === undefined ? page.records : readOn(list, page, tools),
  );
}

async function readOn<T>(
  list: List<T>,
  first: Page<T>,
  { budget, scheduler }: ReadTools,
): Promise<readonly T[]> {
  // To count takes some milliseconds, too: not in the same turn for many operations.
  await scheduler.yield();
  if (await list.exceeds(budget.left)) budget.refuseList();
  const records = [...first.records];
  for (let page = first; page.next !== undefined; records.push(...page.records)) {
    await scheduler.yield();
    page = await page.next();
    if (records.length > budget.left) budget.refuseList();
  }
  return records;
}
