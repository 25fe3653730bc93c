/** Lists of the store in tests. */

import type { List } from '../../dist/store/list.js';

/** All records of a list, page by page. */
export async function allOf<T>(list: List<T>): Promise<readonly T[]> {
  const first = await list.read();
  const records = [...first.records];
  for (let page = first; page.next !== undefined; records.push(...page.records)) {
    page = await page.next();
  }
  return records;
}
