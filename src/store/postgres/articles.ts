/**
 * Articles in PostgreSQL: JSON documents as they came (R14), by id. A change is read, made and
 * then kept only if no other came between, which the row's version tells; else it is made again on
 * what is there now (R16). No lock is held meanwhile, so that a node that stops in the middle of a
 * change delays no other. In one process the changes of an article are queued: only nodes compete,
 * and a node that has lost some attempts takes the lease.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import type { Article, ArticleDraft } from '../model.ts';
import { type ArticleLease, createArticleLease } from './article-lease.ts';
import type { Client, Pool, PostgresContext, Row } from './pool.ts';
import { createList } from '../sql/lists.ts';
import { toArticle } from '../sql/rows.ts';
import { allArticles, nextArticleId, wholeOf } from '../sql/sql.ts';
import type { Articles } from '../store.ts';

/** An attempt fails where another node's change was first, or where it holds the lease. */
const attemptsMax = 100;
/** So many fail before the lease is asked for. */
const attemptsWithoutLease = 3;
/** The longest pause between two attempts while another node holds the lease. */
const leasePauseMilliseconds = 50;
/** Changes that wait for the one in progress, and how long one of them waits. */
const waitingMax = 1_000;
const waitMillisecondsMax = 10_000;

interface Version {
  readonly article: Article;
  readonly version: string;
}

export function createArticles({
  pool,
  sql: statements,
}: Pick<PostgresContext, 'pool' | 'sql'>): Articles {
  const inQueue = createQueue();
  const lease = createArticleLease(pool);
  const every = allArticles('inkwell.', 'version, document');

  const find = async (id: number): Promise<Version | undefined> => {
    const found = await pool.read(
      (sql) => sql`SELECT version, document FROM inkwell.articles WHERE id = ${id}`,
    );
    return found.map(toVersion)[0];
  };

  return {
    all: createList(statements, { table: 'articles', order: 'ASC', toRecord: toArticle }),
    find: async (id) => (await find(id))?.article,
    save: (draft) => {
      const { id } = draft;
      return typeof id === 'number' ? put(pool, { ...draft, id }) : add(pool, draft);
    },
    change: (id, change) =>
      inQueue(id, () =>
        withLease<Article | undefined>(lease, async () => {
          const before = await find(id);
          if (before === undefined) return { kept: undefined };
          const article = change(before.article);
          return replaceAll({ pool, lease }, [{ ...before, article }], article);
        }),
      ),
    changeAll: (change) =>
      inQueue(undefined, () =>
        withLease(lease, async () => {
          const before = wholeOf(await statements.readPage(every)).map(toVersion);
          const after = change(before.map(({ article }) => article));
          const changed = before.flatMap(({ version, article }, index) => {
            const replacement = after[index] ?? article;
            // One that was not touched is the very same object.
            return replacement === article ? [] : [{ version, article: replacement }];
          });
          return replaceAll({ pool, lease }, changed, undefined);
        }),
      ),
  };
}

/** Random: after a failover the next number could be one that was lost, and is in some hand. */
function newVersion(sql: Client): ReturnType<Client['unsafe']> {
  return sql.unsafe('(random() * 9e15)::bigint');
}

async function put(pool: Pool, article: Article): Promise<Article> {
  await pool.write(
    (sql) => sql`INSERT INTO inkwell.articles (id, document)
      VALUES (${article.id}, ${JSON.stringify(article)})
      ON CONFLICT (id) DO UPDATE
      SET document = excluded.document, version = ${newVersion(sql)}`,
  );
  return article;
}

/**
 * Under the first value after the last one that is not taken (R15). Where another node stores an
 * article under that value at this very moment, the counter moves on.
 */
function add(pool: Pool, draft: ArticleDraft): Promise<Article> {
  return retry(async () => {
    const [row] = await pool.write((sql) => sql.unsafe(nextArticleId('inkwell.')));
    const article: Article = { ...draft, id: Number(row?.['value']) };
    const count = await pool.count(
      (sql) => sql`INSERT INTO inkwell.articles (id, document)
        VALUES (${article.id}, ${JSON.stringify(article)}) ON CONFLICT DO NOTHING`,
    );
    return count === 1 ? { kept: article } : undefined;
  });
}

interface LeasedPool {
  readonly pool: Pool;
  readonly lease: ArticleLease;
}

/**
 * All of them, or nothing where one of them is no longer the version that was read, or where
 * another node holds the lease.
 */
async function replaceAll<T>(
  { pool, lease }: LeasedPool,
  changed: readonly Version[],
  kept: T,
): Promise<Done<T> | undefined> {
  if (changed.length === 0) return { kept };
  const rows = changed.map(({ article, version }) => {
    return { id: article.id, version, document: JSON.stringify(article) };
  });
  const count = await pool.count((sql) => {
    // A join alone may read the whole table.
    const isChanged = sql`articles.id = ANY (ARRAY(SELECT id FROM changed))`;
    return sql`WITH changed AS MATERIALIZED (
        SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
          AS row (id bigint, version bigint, document text)
      ), unchanged AS MATERIALIZED (
        SELECT articles.id FROM inkwell.articles JOIN changed USING (id, version)
        WHERE ${isChanged} ORDER BY articles.id FOR UPDATE OF articles
      )
      UPDATE inkwell.articles SET document = changed.document, version = ${newVersion(sql)}
      FROM changed WHERE articles.id = changed.id AND articles.version = changed.version
        AND ${isChanged}
        AND (SELECT count(*) FROM unchanged) = ${rows.length}::int
        AND NOT EXISTS (SELECT FROM inkwell.article_turn
          WHERE holder <> ${lease.holder} AND ends > clock_timestamp())`;
  });
  return count === rows.length ? { kept } : undefined;
}

interface Done<T> {
  readonly kept: T;
}
type Attempt<T> = () => Promise<Done<T> | undefined>;

async function retry<T>(attempt: Attempt<T>): Promise<T> {
  for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
    const done = await attempt();
    if (done !== undefined) return done.kept;
  }
  throw tooMany();
}

/** A few attempts against the other nodes; then with the lease, once it is free. */
async function withLease<T>(lease: ArticleLease, attempt: Attempt<T>): Promise<T> {
  let failed = 0;
  let isHeld = false;
  try {
    return await retry(async () => {
      if (failed >= attemptsWithoutLease) {
        isHeld = await lease.acquire();
        if (!isHeld) {
          await pause(Math.random() * leasePauseMilliseconds);
          return undefined;
        }
      }
      failed += 1;
      return attempt();
    });
  } finally {
    if (isHeld) await lease.release();
  }
}

type InQueue = <T>(id: number | undefined, work: () => Promise<T>) => Promise<T>;

/** Changes of one article one after the other, in the order asked; undefined: of all articles. */
function createQueue(): InQueue {
  /** The last change of each article that has one. */
  const last = new Map<number, Promise<unknown>>();
  let lastOfAll: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return (id, work) => {
    if (waiting >= waitingMax) return Promise.reject(tooMany());
    waiting += 1;
    const since = Date.now();
    const own = id === undefined ? [...last.values()] : [last.get(id) ?? Promise.resolve()];
    const done = Promise.all([...own, lastOfAll]).then(() => {
      if (Date.now() - since > waitMillisecondsMax) throw tooMany();
      return work();
    });
    // The caller gets the error; the next in the queue only waits for the end.
    const ended = done
      .catch(() => undefined)
      .finally(() => {
        waiting -= 1;
        if (id !== undefined && last.get(id) === ended) last.delete(id);
      });
    if (id === undefined) lastOfAll = ended;
    else last.set(id, ended);
    return done;
  };
}

function tooMany(): AppError {
  return new AppError('overloaded', 'Too many changes of articles.', { retryAfterSeconds: 1 });
}

function toVersion(row: Row): Version {
  return { version: String(row['version']), article: toArticle(row) };
}
