/** What SQLite does in its own way: comments, articles, and the index of stored files. */

import { toComments, withId } from '../shared.ts';
import {
  type DurableFileIndex,
  type FileLimits,
  nameIsStored,
  sizeOf,
  tooManyFiles,
} from '../file-index.ts';
import type { Article, Comment } from '../model.ts';
import { createFileStatements, createTable } from '../sql/ports.ts';
import { escapeText, toFile, toRecord, toRow } from '../sql/rows.ts';
import { createReadAfter } from '../sql/comments-after.ts';
import { createList } from '../sql/lists.ts';
import { nextArticleId, requireWhole } from '../sql/statements.ts';
import type { Articles, Comments, Once, Repeated } from '../store.ts';
import { isSqliteError, sqliteForeignKey } from './database.ts';
import { runOnce } from './requests.ts';
import type { SqliteContext } from './statements.ts';

/** Runs a write in a transaction, once under its key (R40). */
function createWrite({ sql, transactions }: Pick<SqliteContext, 'sql' | 'transactions'>) {
  return <T>(once: Once | undefined, write: () => T): Promise<T | Repeated> =>
    transactions.write(() => runOnce(sql, { once }, write));
}

/** The foreign key of a comment tells that its post does not exist. */
export function createComments(context: SqliteContext): Comments {
  const { sql, createId, now } = context;
  const inTransaction = createWrite(context);
  const readAfter = createReadAfter(sql);
  return {
    ...toComments(createTable(sql, 'comments')),
    placeOf(id) {
      const [row] = sql.read('SELECT seq FROM comments WHERE id = $1', [id]);
      return row && { at: Number(row['seq']) };
    },
    after({ at }, { onCut, ...range }) {
      // The page is read in this call, so that no comment comes between the cut and the page.
      onCut();
      return readAfter({ from: Number(at), upTo: Infinity }, range);
    },
    add: (postId, content, once) =>
      inTransaction(once, () => {
        const comment: Comment = { id: createId(), content, createdAt: now(), postId };
        try {
          sql.put('comments', toRow(comment));
          return comment;
        } catch (error) {
          // Only this statement is rolled back.
          if (isSqliteError(error) && error.errcode === sqliteForeignKey) return undefined;
          throw error;
        }
      }),
  };
}

/** JSON documents as sent (R14), by id. */
export function createArticles(context: SqliteContext): Articles {
  const { sql } = context;
  const inTransaction = createWrite(context);
  const findCells = sql.createFind(['articles', 'id']);
  const find = (id: number): Article | undefined => {
    const cells = findCells(id);
    return cells && toRecord.articles(cells);
  };
  const nextId = (): number => Number(sql.run('counters', nextArticleId(''), [])[0]?.['value']);
  const onConflict = 'ON CONFLICT (id) DO UPDATE SET document = excluded.document';
  const save = (article: Article): Article => {
    sql.put('articles', toRow(article), onConflict);
    return article;
  };
  return {
    all: createList(sql, 'articles')(),
    find,
    save: (draft, once) =>
      inTransaction(once, () => {
        const { id, json } = draft;
        return save(id === undefined ? withId(draft, nextId()) : { id, json });
      }),
    change: (id, change, once) =>
      inTransaction(once, () => {
        const article = find(id);
        return article && save(change(article));
      }),
    async changeAll(change, once) {
      const done = await inTransaction(once, () => {
        const before = requireWhole(sql.readArticles('id, document')).map(toRecord.articles);
        // An article that did not change is the same object.
        const changed = change(before).filter((article, index) => article !== before[index]);
        for (const article of changed) save(article);
        return true;
      });
      return typeof done === 'object' ? done : undefined;
    },
  };
}

export function createFileIndex(
  context: Pick<SqliteContext, 'sql' | 'transactions'>,
  limits: FileLimits,
): DurableFileIndex {
  const { sql } = context;
  const inTransaction = createWrite(context);
  const total = 'SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM files';
  const find = 'SELECT seq, stored_name, disk_name, size FROM files WHERE stored_name = $1';
  // Older builds need the column `change`.
  const save = `INSERT INTO files (stored_name, disk_name, size, change) VALUES ($1, $2, $3, 0)
    ON CONFLICT (stored_name) DO UPDATE SET disk_name = excluded.disk_name, size = excluded.size`;
  return {
    ...createFileStatements(sql),
    commit: (files, { once, onlyNew = false } = {}) =>
      inTransaction(once, () => {
        const replaced = files.flatMap(({ storedName }) =>
          sql.read(find, [escapeText(storedName)]).map(toFile),
        );
        if (onlyNew && replaced.length > 0) throw nameIsStored();
        const [stored] = sql.read(total, []);
        const count = Number(stored?.['n']) + files.length - replaced.length;
        const bytes = Number(stored?.['bytes']) + sizeOf(files) - sizeOf(replaced);
        if (count > limits.filesMax || bytes > limits.bytesMax) throw tooManyFiles(limits);
        for (const { storedName, temporaryName, size } of files) {
          sql.run('files', save, [escapeText(storedName), temporaryName, size]);
        }
        return replaced;
      }),
  };
}
