/** Authors in PostgreSQL. */

import { toAuthor } from '../author-row.ts';
import { type PostgresContext, toIdArray } from './rows.ts';
import type { Authors } from '../store.ts';

export function createAuthors({ pool }: PostgresContext): Authors {
  return {
    async find(id) {
      const [row] = await pool.read(
        (sql) => sql`SELECT id, name, email, created_at FROM inkwell.authors WHERE id = ${id}`,
      );
      return row && toAuthor(row);
    },
    async byIds(ids) {
      const authors = await pool.readPages(
        (sql) => sql`SELECT id, name, email, created_at FROM inkwell.authors
          WHERE id IN (SELECT unnest(${toIdArray(ids)}::text::uuid[]))`,
        toAuthor,
      );
      return new Map(authors.map((author) => [author.id, author]));
    },
  };
}
