/** Authors in SQLite. */

import { toAuthor } from '../rows.ts';
import type { Authors } from '../store.ts';
import { createSelect } from './statements.ts';
import type { SqliteContext } from './writes.ts';

export function createAuthors({ database }: SqliteContext): Authors {
  const select = createSelect(database, 'authors', toAuthor);
  const find = select('WHERE id = ?');
  const byIds = select('WHERE id IN (SELECT value FROM json_each(?))');
  return {
    find: (id) => find.first(id),
    byIds: (ids) =>
      new Map(byIds.all(JSON.stringify(ids)).map((author) => [author.id, author] as const)),
  };
}
