/** Authors in PostgreSQL. */

import { toAuthor } from '../rows.ts';
import type { Authors } from '../store.ts';
import { type PostgresContext, toIdArray } from './pool.ts';

export function createAuthors({ pool }: PostgresContext): Authors {
  return {
    find: (id) =>
      pool.readOne(
        (sql) => sql`SELECT id, name, email, created_at FROM inkwell.authors WHERE id = ${id}`,
        toAuthor,
      ),
    async byIds(ids) {
      const authors = await pool.readAll(
        (sql) => sql`SELECT id, name, email, created_at FROM inkwell.authors
          WHERE id IN (SELECT unnest(${toIdArray(ids)}::text::uuid[]))`,
        toAuthor,
      );
      return new Map(authors.map((author) => [author.id, author]));
    },
  };
}
