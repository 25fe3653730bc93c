/** Authors in PostgreSQL. */

import type { Author } from './model.ts';
import type { Row } from './postgres-pool.ts';
import { type PostgresContext, toIdArray } from './postgres-rows.ts';
import type { Authors } from './store.ts';
import { unescapeText } from './text-escape.ts';

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

function toAuthor(row: Row): Author {
  return {
    id: String(row['id']),
    name: unescapeText(String(row['name'])),
    email: unescapeText(String(row['email'])),
    createdAt: String(row['created_at']),
  };
}
