/** Lists of records in tests. */

import type { List } from '../../dist/store/store.js';

/** All records of a list, page by page. */
export async function allOf<T>(list: List<T>): Promise<readonly T[]> {
  const first = await list.read();
  const records = [...first.records];
  for (let page = first; page.next !== undefined; records.push(...page.records)) {
    page = await page.next();
  }
  return records;
}

/** One member of each record. */
export function pluck<T, K extends keyof T>(records: readonly T[], name: K): readonly T[K][] {
  return records.map((record) => record[name]);
}

/** The numbers from 0 on, so many. */
export function times(count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => at);
}

/** The words of a text, as cases that hold no blank. */
export function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}
