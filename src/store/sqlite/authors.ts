/** Authors in SQLite. */

import type { SqliteContext } from './writes.ts';
import { toAuthor } from '../author-row.ts';
import type { Authors } from '../store.ts';

export function createAuthors({ database }: SqliteContext): Authors {
  const columns = 'id, name, email, created_at';
  const find = database.prepare(`SELECT ${columns} FROM authors WHERE id = ?`);
  const byIds = database.prepare(
    `SELECT ${columns} FROM authors WHERE id IN (SELECT value FROM json_each(?))`,
  );
  return {
    find(id) {
      const row = find.get(id);
      return row && toAuthor(row);
    },
    byIds: (ids) => {
      return new Map(
        byIds.all(JSON.stringify(ids)).map((row) => [String(row['id']), toAuthor(row)]),
      );
    },
  };
}
