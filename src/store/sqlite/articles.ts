/** Articles in SQLite: JSON documents as they came (R14), by id. */

import type { Row } from './database.ts';
import type { SqliteContext } from './writes.ts';
import type { Article } from '../model.ts';
import type { Articles } from '../store.ts';

export function createArticles({ database, writes }: SqliteContext): Articles {
  const list = database.prepare('SELECT document FROM articles ORDER BY id');
  const find = database.prepare('SELECT document FROM articles WHERE id = ?');
  const keep = database.prepare(
    `INSERT INTO articles (id, document) VALUES (?, ?)
     ON CONFLICT (id) DO UPDATE SET document = excluded.document`,
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
    keep.run(article.id, JSON.stringify(article));
    return article;
  };
  const get = (id: number): Article | undefined => {
    const row = find.get(id);
    return row && toArticle(row);
  };

  return {
    list: () => list.all().map(toArticle),
    find: get,
    save(draft) {
      return writes.run(() => {
        const id = typeof draft['id'] === 'number' ? draft['id'] : Number(next.get()?.['value']);
        return save({ ...draft, id });
      });
    },
    change(id, change) {
      return writes.run(() => {
        const article = get(id);
        return article && save(change(article));
      });
    },
    changeAll(change) {
      return writes.run(() => {
        const before = list.all().map(toArticle);
        // One that was not touched is the very same object.
        const changed = change(before).filter((article, index) => article !== before[index]);
        // All texts before the first statement: a document that has none refuses this write alone.
        const texts = changed.map((article) => [article.id, JSON.stringify(article)] as const);
        for (const [id, text] of texts) keep.run(id, text);
      });
    },
  };
}

function toArticle(row: Row): Article {
  return JSON.parse(String(row['document'])) as Article; // written by `save`
}
