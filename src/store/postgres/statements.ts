/** The parts of the shared statements that are specific to PostgreSQL. */

import { type PageQuery, pageBytesMax, type RowPage, type Sql } from '../sql/sql.ts';
import type { Table } from '../sql/rows.ts';
import type { Pool } from './pool.ts';

/** The size of a row's texts in bytes, which PostgreSQL knows without reading them. */
const sizeOf: Readonly<Partial<Record<Table, string>>> = {
  posts: 'octet_length(title) + octet_length(content)',
  comments: 'octet_length(content)',
  todos: 'octet_length(title)',
  articles: 'octet_length(document)',
};

export function createStatements(pool: Pool): Sql {
  return {
    schema: 'inkwell.',
    // A subselect is evaluated once, not for each row.
    now: '(SELECT (extract(epoch FROM now()) * 1000)::bigint)',
    limit: (parameter) => hidden(parameter, 'bigint'),
    itemsOf: (parameter) => `json_array_elements_text(${parameter}::text::json) AS item (value)`,
    // No equality: it would do for the plan to read in the order of `seq`, or to hash the table.
    ofEach: ([table, column]) => `(
        SELECT json_array_elements_text($1::text::json)::uuid AS value
      ) AS owner CROSS JOIN LATERAL (
        SELECT * FROM inkwell.${table} WHERE ${column} BETWEEN value AND value
        ORDER BY ${column} LIMIT $2
      ) AS owned LIMIT $2`,
    ofOne([table, column], order) {
      const [beyond, within] = order === 'ASC' ? ['>', '<='] : ['<', '>='];
      const [owner, place] = [hidden('$1', 'uuid'), hidden('$2', 'bigint')];
      return `inkwell.${table}
        WHERE (${column}, seq) ${beyond} (${owner}, ${place}) AND ${column} ${within} ${owner}
        ORDER BY ${column} ${order}, seq ${order} LIMIT ${hidden('$3', 'bigint')}`;
    },
    read: (text, values) => pool.read({ text, values }),
    write: (_table, text, values) => pool.write({ text, values }),
    async readPage(query: PageQuery): Promise<RowPage> {
      const { table, text, values, order, bytesMax = pageBytesMax } = query;
      const page = `SELECT * FROM (
          SELECT page.*, sum(${sizeOf[table]}) OVER (ORDER BY place ${order}) AS bytes
          FROM (${text}) AS page
        ) AS sized WHERE bytes - (${sizeOf[table]}) < ${bytesMax} ORDER BY place ${order}`;
      const rows = await pool.read({ text: page, values });
      return { rows, isCut: Number(rows.at(-1)?.['bytes'] ?? 0) >= bytesMax };
    },
  };
}

/**
 * Hides a value from the planner, so that one generic plan is made per connection. Otherwise the
 * server estimates a plan with the value as cheaper and plans each execution again, which doubles
 * the work of reading a page.
 */
function hidden(parameter: string, type: 'bigint' | 'uuid'): string {
  return `(SELECT ${parameter}::${type})`;
}
