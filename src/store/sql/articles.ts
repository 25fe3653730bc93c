/** Articles in SQL, for both drivers: JSON documents as sent (R14), by id. */

import type { Article, ArticleDraft } from '../model.ts';
import { changedLengthMax, kinds, tooLongToChange, withId } from '../shared.ts';
import type { Articles } from '../store.ts';
import { createFind, createList } from './lists.ts';
import { createChanges } from './changes.ts';
import { type Row, sizeOf, toCells, toRecord, toRow } from './rows.ts';
import type { Sql } from './statements.ts';
import { inTurn, type Transaction } from './transaction.ts';

/** A change locks the article, or all of them (R16). */
export function createArticles(sql: Sql): Articles {
  const { schema, forUpdate, transact } = sql;
  const select = `SELECT id, document FROM ${schema}articles`;
  const length = `SELECT coalesce(sum(${sizeOf('articles')}), 0) AS n FROM ${schema}articles`;
  const nextId = nextArticleId(schema);
  const unlessThere = 'ON CONFLICT DO NOTHING';
  const replacing = `ON CONFLICT (id) DO UPDATE SET document = excluded.document${sql.newVersion}`;

  function* save(articles: readonly Article[], onConflict = replacing): Transaction<number> {
    const options = { onConflict: `${onConflict} RETURNING id` };
    return (yield* sql.insert('articles', articles.map(toRow), options)).length;
  }
  function* saveDraft(draft: ArticleDraft): Transaction<Article> {
    const { id, json } = draft;
    if (id !== undefined) {
      yield* save([{ id, json }]);
      return { id, json };
    }
    for (;;) {
      const [next] = yield ['counters', nextId, []];
      const article = withId(draft, Number(next?.['value']));
      // Another node may have stored an article under that id at the same moment.
      if ((yield* save([article], unlessThere)) > 0) return article;
    }
  }
  return {
    all: createList(sql, 'articles')(),
    find: createFind(sql, ['articles', 'id']),
    save: (draft, once) => transact(once, () => saveDraft(draft)),
    create: (article, once) =>
      transact(once, function* () {
        return (yield* save([article], unlessThere)) > 0 ? article : undefined;
      }),
    remove: createChanges(sql, ['articles', 'id'], kinds.articles).remove,
    change: (id, change, once) =>
      transact(once, function* () {
        const [row] = yield ['', `${select} WHERE id = $1${forUpdate}`, [id]];
        if (row === undefined) return undefined;
        const changed = yield* inTurn(() => change(toArticle(row)));
        yield* save([changed]);
        return changed;
      }),
    async changeAll(change, once) {
      const done = await transact(once, function* () {
        const [sum] = yield ['', length, []];
        if (Number(sum?.['n']) > changedLengthMax) throw tooLongToChange();
        // In one order, so that two changes of all never wait in a circle.
        const before = (yield ['', `${select} ORDER BY id${forUpdate}`, []]).map(toArticle);
        const after = yield* inTurn(() => change(before));
        // An article that did not change is the same object.
        yield* save(after.filter((article, at) => article !== before[at]));
        return true;
      });
      return typeof done === 'object' ? done : undefined;
    },
  };
}

function toArticle(row: Row): Article {
  return toRecord.articles(toCells('articles', row));
}

/** Moves the counter to the next free value, and returns that (R15). */
function nextArticleId(schema: string): string {
  const articles = `${schema}articles`;
  const isFree = (id: string): string =>
    `NOT EXISTS (SELECT 1 FROM ${articles} AS other WHERE other.id = ${id})`;
  // The next value or, if it is taken, the one after the first id without a successor.
  return `UPDATE ${schema}counters SET value = coalesce(
      (SELECT value + 1 WHERE ${isFree('value + 1')}),
      (SELECT id + 1 FROM ${articles} AS taken
        WHERE id > value AND ${isFree('taken.id + 1')} ORDER BY id LIMIT 1)
    ) WHERE name = 'articles' RETURNING value`;
}
