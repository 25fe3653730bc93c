/** Articles in SQLite: JSON documents as sent (R14), by id. */

import { withId } from '../drivers.ts';
import type { Article } from '../model.ts';
import { type NewRow, toArticle, toArticleRow } from '../sql/rows.ts';
import type { Articles } from '../store.ts';
import { createList } from '../sql/lists.ts';
import { nextArticleId, toInsert, wholeOf } from '../sql/sql.ts';
import type { SqliteContext } from './statements.ts';

export function createArticles({ writes, sql }: SqliteContext): Articles {
  const find = (id: number): Article | undefined =>
    sql.read('SELECT id, document FROM articles WHERE id = $1', [id]).map(toArticle)[0];
  const nextId = (): number => Number(sql.run('counters', nextArticleId(''), [])[0]?.['value']);
  const onConflict = 'ON CONFLICT (id) DO UPDATE SET document = excluded.document';
  const keep = (row: NewRow): unknown =>
    sql.run(...toInsert(sql, { table: 'articles', row, onConflict }));
  const save = (article: Article): Article => {
    keep(toArticleRow(article));
    return article;
  };

  return {
    all: createList(sql, { table: 'articles', order: 'ASC', toRecord: toArticle }),
    find,
    save: (draft) =>
      writes.run(() => {
        const { id, json } = draft;
        return save(id === undefined ? withId(draft, nextId()) : { id, json });
      }),
    change: (id, change) =>
      writes.run(() => {
        const article = find(id);
        return article && save(change(article));
      }),
    changeAll: (change) =>
      writes.run(() => {
        const before = wholeOf(sql.readArticles('id, document')).map(toArticle);
        // An article that did not change is the same object.
        const changed = change(before).filter((article, index) => article !== before[index]);
        for (const row of changed.map(toArticleRow)) keep(row);
      }),
  };
}
