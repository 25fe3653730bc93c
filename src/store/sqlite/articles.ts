/** Articles in SQLite: JSON documents as they came (R14), by id. */

import type { Article } from '../model.ts';
import { toArticle, toArticleRow } from '../rows.ts';
import type { Articles } from '../store.ts';
import { createInsert, createSelect } from './statements.ts';
import type { SqliteContext } from './writes.ts';

export function createArticles(context: SqliteContext): Articles {
  const { database, writes } = context;
  const select = createSelect(database, 'articles', toArticle);
  const list = select('ORDER BY id');
  const find = select('WHERE id = ?');
  const keep = createInsert(
    context,
    'articles',
    'ON CONFLICT (id) DO UPDATE SET document = excluded.document',
  );
  // The first value after the last one that is not taken (R15): the next one, or one after an id.
  const next = database.prepare(
    `UPDATE counters SET value = (
       SELECT min(free) FROM (
         SELECT value + 1 AS free
         UNION ALL SELECT id + 1 FROM articles WHERE id > value
       ) WHERE NOT EXISTS (SELECT 1 FROM articles WHERE id = free)
     ) WHERE name = 'articles' RETURNING value`,
  );
  const save = (article: Article): Article => {
    keep(toArticleRow(article));
    return article;
  };

  return {
    list: () => list.all(),
    find: (id) => find.first(id),
    save: (draft) =>
      writes.run(() => {
        const id = typeof draft['id'] === 'number' ? draft['id'] : Number(next.get()?.['value']);
        return save({ ...draft, id });
      }),
    change: (id, change) =>
      writes.run(() => {
        const article = find.first(id);
        return article && save(change(article));
      }),
    changeAll: (change) =>
      writes.run(() => {
        const before = list.all();
        // One that was not touched is the very same object.
        const changed = change(before).filter((article, index) => article !== before[index]);
        // All texts before the first statement: a document that has none refuses this write alone.
        for (const row of changed.map(toArticleRow)) keep(row);
      }),
  };
}
