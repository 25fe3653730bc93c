/**
 * Articles in PostgreSQL: JSON documents as sent (R14), by id. A change is optimistic: it is stored
 * only if the version of the row is still the one that was read, otherwise it is made again (R16).
 * No lock is held in between, so that a node that stops during a change does not delay others.
 * Changes of an article by one process are queued, so that only nodes compete; a node that has lost
 * some attempts takes the lease.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type AppError, overloaded } from '../../errors.ts';
import { withId } from '../drivers.ts';
import type { Article, ArticleDraft } from '../model.ts';
import type { PostgresContext } from './statements.ts';
import type { Pool } from './pool.ts';
import { sql } from './connection.ts';
import { createList, findBy, nextArticleId, wholeOf } from '../sql/sql.ts';
import { type Row, toRecord } from '../sql/rows.ts';
import type { Articles, DriverOptions } from '../store.ts';

/** An attempt fails if another node changed the article first, or holds the lease. */
const attemptsMax = 100;
/** Failed attempts before the lease is requested. */
const attemptsWithoutLease = 3;
/** Maximum pause between two attempts while another node holds the lease. */
const leasePauseMilliseconds = 50;
/** Changes that may wait for the one in progress, and for how long. */
const waitingMax = 1_000;
const waitMillisecondsMax = 10_000;

interface Version {
  readonly article: Article;
  readonly version: string;
}
type Change = (articles: readonly Article[]) => readonly Article[];

export function createArticles({
  pool,
  sql: statements,
  run,
}: Pick<PostgresContext, 'pool' | 'sql'> & Pick<DriverOptions, 'run'>): Articles {
  const inQueue = createQueue();
  const lease = createArticleLease(pool);

  const findVersion = async (id: number): Promise<readonly Version[]> => {
    const found = await pool.read(
      sql`SELECT id, version, document FROM inkwell.articles WHERE id = ${id}`,
    );
    return found.map(toVersion);
  };
  /** Returns the articles after the change; undefined if another node came first. */
  const tryToChange = async (
    read: () => Promise<readonly Version[]>,
    change: Change,
  ): Promise<readonly Article[] | undefined> => {
    const before = await read();
    const after = await run(() => change(before.map(({ article }) => article)));
    const changed = before.flatMap(({ version, article }, index) => {
      const replacement = after[index] ?? article;
      // An article that did not change is the same object.
      return replacement === article ? [] : [{ version, article: replacement }];
    });
    return (await replaceAll(pool, lease, changed)) ? after : undefined;
  };

  return {
    all: createList(statements, 'articles'),
    find: findBy(statements, ['articles', 'id']),
    save: (draft) => {
      const { id, json } = draft;
      return id === undefined ? add(pool, draft) : put(pool, { id, json });
    },
    async change(id, change) {
      const changeAny: Change = (articles) => articles.map(change);
      const attempt = () => tryToChange(() => findVersion(id), changeAny);
      return (await inQueue(id, () => withLease(lease, attempt)))[0];
    },
    async changeAll(change) {
      const readAll = async () =>
        wholeOf(await statements.readArticles('id, version, document')).map(toVersion);
      await inQueue(undefined, () => withLease(lease, () => tryToChange(readAll, change)));
    },
  };
}

async function put(pool: Pool, article: Article): Promise<Article> {
  await pool.write(
    sql`INSERT INTO inkwell.articles (id, document)
      VALUES (${article.id}, ${article.json})
      ON CONFLICT (id) DO UPDATE SET document = excluded.document, version = DEFAULT`,
  );
  return article;
}

/**
 * Stores the draft under the next free value of the counter (R15). If another node stores an
 * article under it at the same moment, the counter moves on.
 */
function add(pool: Pool, draft: ArticleDraft): Promise<Article> {
  return retry(async () => {
    const [row] = await pool.write({ text: nextArticleId('inkwell.'), values: [] });
    const article = withId(draft, Number(row?.['value']));
    const stored = await pool.write(
      sql`INSERT INTO inkwell.articles (id, document)
        VALUES (${article.id}, ${article.json}) ON CONFLICT DO NOTHING RETURNING 1`,
    );
    return stored.length === 1 ? article : undefined;
  });
}

/**
 * Stores all changes, or none and returns false: if an article is no longer the version that was
 * read, or another node holds the lease.
 */
async function replaceAll(
  pool: Pool,
  { holder }: ArticleLease,
  changed: readonly Version[],
): Promise<boolean> {
  if (changed.length === 0) return true;
  const rows = changed.map(({ article, version }) => {
    return { id: article.id, version, document: article.json };
  });
  const stored = await pool.write(
    // `= ANY` forces the index: a join alone may read the whole table.
    sql`WITH changed AS MATERIALIZED (
        SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
          AS row (id bigint, version bigint, document text)
      ), unchanged AS MATERIALIZED (
        SELECT articles.id FROM inkwell.articles JOIN changed USING (id, version)
        WHERE articles.id = ANY (ARRAY(SELECT id FROM changed))
        ORDER BY articles.id FOR UPDATE OF articles
      )
      UPDATE inkwell.articles SET document = changed.document, version = DEFAULT
      FROM changed WHERE articles.id = changed.id AND articles.version = changed.version
        AND articles.id = ANY (ARRAY(SELECT id FROM changed))
        AND (SELECT count(*) FROM unchanged) = ${rows.length}::int
        AND NOT EXISTS (SELECT FROM inkwell.article_turn
          WHERE holder <> ${holder} AND ends > clock_timestamp())
      RETURNING 1`,
  );
  return stored.length === rows.length;
}

/** Returns undefined if it failed, and can be repeated. */
type Attempt<T> = () => Promise<T | undefined>;

async function retry<T>(attempt: Attempt<T>): Promise<T> {
  for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
    const done = await attempt();
    if (done !== undefined) return done;
  }
  throw tooMany();
}

/** Tries without the lease first, then with it, once it is free. */
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

/** Runs changes of the same article in sequence, in this order; undefined: of all articles. */
function createQueue(): InQueue {
  /** The last change of each article that has one. */
  const last = new Map<number, Promise<unknown>>();
  let lastOfAll: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return (id, work) => {
    if (waiting >= waitingMax) return Promise.reject(tooMany());
    waiting += 1;
    const since = performance.now();
    const own = id === undefined ? [...last.values()] : [last.get(id) ?? Promise.resolve()];
    const done = Promise.all([...own, lastOfAll]).then(() => {
      if (performance.now() - since > waitMillisecondsMax) throw tooMany();
      return work();
    });
    // Errors go to the caller; the next change in the queue only waits.
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
  return overloaded('Too many changes of articles.');
}

function toVersion(row: Row): Version {
  return { version: String(row['version']), article: toRecord('articles', row) };
}

/**
 * A short lease for changing articles (the table `article_turn`). A node near the database would
 * always win the comparison of versions against one that is farther away; a node that has lost some
 * of them takes the lease first. The lease is a row with an expiry time, not a lock: if its node
 * stops, others wait `leaseMilliseconds`. It makes changes fair; the comparison of versions, which
 * is always made, makes them correct.
 */
type ArticleLease = ReturnType<typeof createArticleLease>;

/** By the clock of the database. */
const leaseMilliseconds = 1_000;

function createArticleLease(pool: Pool) {
  const holder = randomUUID();
  return {
    /** Identifies this node in the table. */
    holder,
    /** Returns false if another node holds the lease. Renews it if this node does. */
    async acquire(): Promise<boolean> {
      const rows = await pool.write(
        sql`UPDATE inkwell.article_turn SET holder = ${holder},
            ends = clock_timestamp() + ${leaseMilliseconds}::int * interval '1 millisecond'
          WHERE holder = ${holder} OR ends <= clock_timestamp() RETURNING 1`,
      );
      return rows.length === 1;
    },
    /** Without a database the lease expires by itself. Never rejects. */
    async release(): Promise<void> {
      await pool
        .write(
          sql`UPDATE inkwell.article_turn SET ends = '-infinity'
            WHERE holder = ${holder}`,
        )
        .catch(() => undefined);
    },
  };
}
