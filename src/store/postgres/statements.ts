/** The statements that both drivers on SQL share, on PostgreSQL. */

import { type PageQuery, pageBytesMax, type RowPage, type Sql } from '../sql/sql.ts';
import type { Table } from '../sql/rows.ts';
import type { ListShare } from './list-share.ts';
import type { Pool } from './pool.ts';

/** The bytes of a row's texts, which PostgreSQL knows without reading them. */
const sizeOf: Readonly<Partial<Record<Table, string>>> = {
  posts: 'octet_length(title) + octet_length(content)',
  comments: 'octet_length(content)',
  todos: 'octet_length(title)',
  articles: 'octet_length(document)',
};

export function createStatements(pool: Pool, inShare: ListShare): Sql {
  const read: Sql['read'] = (text, values) =>
    pool.read((sql) => sql.unsafe(text, [...values], { prepare: true }));
  return {
    schema: 'inkwell.',
    // A subselect is computed once, not for each row.
    now: '(SELECT (extract(epoch FROM now()) * 1000)::bigint)',
    // It is unnested and joined: `= ANY` would go through all of it for every row.
    idsOf: (parameter) => `SELECT json_array_elements_text(${parameter}::text::json)::uuid`,
    read,
    write: (_table, text, values) =>
      pool.count((sql) => sql.unsafe(text, [...values], { prepare: true })),
    async readPage(query: PageQuery): Promise<RowPage> {
      const { table, text, values, order, bytesMax = pageBytesMax } = query;
      const page = `SELECT * FROM (
          SELECT page.*, sum(${sizeOf[table]}) OVER (ORDER BY place ${order}) AS bytes
          FROM (${text}) AS page
        ) AS sized WHERE bytes - (${sizeOf[table]}) < ${bytesMax} ORDER BY place ${order}`;
      const rows = await inShare(table, async () => read(page, values));
      return { rows, isCut: Number(rows.at(-1)?.['bytes'] ?? 0) >= bytesMax };
    },
  };
}
