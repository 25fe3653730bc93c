/**
 * Articles in PostgreSQL: JSON documents as sent (R14), by id. A change is optimistic: it is stored
 * only if the version of the row is still the one that was read, otherwise it is made again (R16).
 * No lock is held in between, so that a node that stops during a change does not delay others.
 * Changes of an article by one process are queued, and so are changes of all articles: only nodes
 * compete, and those of one with those of all. Who has lost some attempts takes the lease.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type AppError, overloaded } from '../../errors.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import { withId } from '../shared.ts';
import type { Article, ArticleDraft } from '../model.ts';
import type { PostgresContext } from './statements.ts';
import type { Pool } from './pool.ts';
import { sql } from './connection.ts';
import { createFind, createList } from '../sql/lists.ts';
import { nextArticleId, wholeOf } from '../sql/statements.ts';
import { type Cells, toRecord } from '../sql/rows.ts';
import type { Articles, DriverOptions } from '../store.ts';

/** An attempt fails if somebody else changed the article first, or holds the lease. */
const attemptsMax = 100;
/** Failed attempts before the lease is requested. */
const attemptsWithoutLease = 3;
/** Maximum pause between two attempts while another node holds the lease. */
const leasePauseMilliseconds = 50;
/** Changes that may wait for the one in progress: of one article, and of all. */
const waitingForOneMax = 1_000;
const waitingForAllMax = 100;
/** How long a change may wait for others. */
const waitMillisecondsMax = 5_000;

interface Version {
  readonly article: Article;
  readonly version: string;
}
/** Reads id, document and version. */
type Read = (askedAt: number) => Promise<readonly Cells[]>;
/** Runs in a turn of the event loop. */
type Change = (articles: readonly Article[]) => MaybePromise<readonly Article[]>;

export function createArticles({
  pool,
  sql: statements,
  run,
}: Pick<PostgresContext, 'pool' | 'sql'> & Pick<DriverOptions, 'run'>): Articles {
  const changeOne = createChanges(pool, waitingForOneMax);
  const changeAll = createChanges(pool, waitingForAllMax);
  const readAll: Read = async (askedAt) =>
    wholeOf(await statements.readArticles('id, document, version', askedAt));
  return {
    all: createList(statements, 'articles')(),
    find: createFind(statements, ['articles', 'id']),
    save: (draft) => {
      const { id, json } = draft;
      return id === undefined ? add(pool, draft) : put(pool, { id, json });
    },
    async change(id, change) {
      const text = sql`SELECT id, document, version FROM inkwell.articles WHERE id = ${id}`;
      const read: Read = (askedAt) => pool.readCells(text, askedAt);
      return (await changeOne(id, read, (articles) => run(() => articles.map(change))))[0];
    },
    async changeAll(change) {
      await changeAll('all', readAll, (articles) => run(() => change(articles)));
    },
  };
}

/**
 * Returns a function that changes what `read` returns, one after the other for each key. `askedAt`:
 * when the change was asked for, whose time limit spans all its statements.
 */
function createChanges(pool: Pool, waitingMax: number) {
  const inQueue = createQueue(waitingMax);
  const lease = createArticleLease(pool);
  return (key: unknown, read: Read, change: Change): Promise<readonly Article[]> =>
    inQueue(key, (askedAt) => {
      // Undefined: another change came first.
      const attempt = async (): Promise<readonly Article[] | undefined> => {
        const before = (await read(askedAt)).map(toVersion);
        const after = await change(before.map(({ article }) => article));
        const changed = before.flatMap(({ version, article }, index) => {
          const replacement = after[index] ?? article;
          // An article that did not change is the same object.
          return replacement === article ? [] : [{ version, article: replacement }];
        });
        return (await replaceAll(pool, { holder: lease.holder, changed, askedAt }))
          ? after
          : undefined;
      };
      return withLease(lease, attempt, askedAt);
    });
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

interface Replacements {
  readonly holder: string;
  readonly changed: readonly Version[];
  readonly askedAt: number;
}

/**
 * Stores all changes, or none and returns false: if an article is no longer the version that was
 * read, or somebody else holds the lease.
 */
async function replaceAll(
  pool: Pool,
  { holder, changed, askedAt }: Replacements,
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
    askedAt,
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
async function withLease<T>(lease: ArticleLease, attempt: Attempt<T>, askedAt: number): Promise<T> {
  let failed = 0;
  let isHeld = false;
  try {
    return await retry(async () => {
      if (failed >= attemptsWithoutLease) {
        isHeld = await lease.acquire(askedAt);
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

/** Runs work for the same key in sequence, in this order; `waitingMax`: for all keys. */
function createQueue(waitingMax: number) {
  /** The last work for each key that has some. */
  const last = new Map<unknown, Promise<unknown>>();
  let waiting = 0;
  return <T>(key: unknown, work: (askedAt: number) => Promise<T>): Promise<T> => {
    if (waiting >= waitingMax) return Promise.reject(tooMany());
    waiting += 1;
    const askedAt = performance.now();
    const done = (last.get(key) ?? Promise.resolve()).then(() => {
      if (performance.now() - askedAt > waitMillisecondsMax) throw tooMany();
      return work(askedAt);
    });
    // Errors go to the caller; the next in the queue only waits.
    const ended = done
      .catch(() => undefined)
      .finally(() => {
        waiting -= 1;
        if (last.get(key) === ended) last.delete(key);
      });
    last.set(key, ended);
    return done;
  };
}

function tooMany(): AppError {
  return overloaded('Too many changes of articles.');
}

function toVersion(cells: Cells): Version {
  return { version: cells[2], article: toRecord.articles(cells) };
}

/**
 * A short lease for changing articles (the table `article_turn`). A node near the database would
 * always win the comparison of versions against one that is farther away; a node that has lost some
 * of them takes the lease first. The lease is a row with an expiry time, not a lock: if its node
 * stops, others wait `leaseMilliseconds`. Changes of one article and of all have one each, because
 * they do not wait for each other either. It makes changes fair; the comparison of versions, which
 * is always made, makes them correct.
 */
type ArticleLease = ReturnType<typeof createArticleLease>;

/** By the clock of the database. */
const leaseMilliseconds = 1_000;

function createArticleLease(pool: Pool) {
  const holder = randomUUID();
  return {
    /** Identifies this lease in the table. */
    holder,
    /** Returns false if somebody else holds the lease. Renews it otherwise. */
    async acquire(askedAt: number): Promise<boolean> {
      const rows = await pool.write(
        sql`UPDATE inkwell.article_turn SET holder = ${holder},
            ends = clock_timestamp() + ${leaseMilliseconds}::int * interval '1 millisecond'
          WHERE holder = ${holder} OR ends <= clock_timestamp() RETURNING 1`,
        askedAt,
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
