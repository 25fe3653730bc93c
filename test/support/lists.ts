/** Lists of records in tests. */

import assert from 'node:assert/strict';
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

export interface Listed {
  readonly id: string | number;
}

/** Follows `Link` from the first page to the last one. */
export async function readPages(
  server: { readonly fetch: (path: string) => Promise<Response> },
  path: string,
): Promise<readonly (readonly Listed[])[]> {
  const pages: (readonly Listed[])[] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const response: Response = await server.fetch(next);
    assert.equal(response.status, 200, `round ${next}`);
    pages.push((await response.json()) as Listed[]);
    next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1];
  }
  return pages;
}
