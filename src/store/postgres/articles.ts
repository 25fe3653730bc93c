/**
 * Articles in PostgreSQL: JSON documents as they came (R14), by id. A change is read, made and
 * then kept only if no other came between, which the row's version tells; else it is made again on
 * what is there now (R16). No lock is held while this process thinks, so that a node that stops in
 * the middle of a change holds up nobody. The changes of this process queue up: only nodes compete,
 * and one that has lost some rounds takes the turn.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import type { Article, ArticleDraft } from '../model.ts';
import { type ArticleTurn, createArticleTurn } from './article-lease.ts';
import type { Pool, Row } from './pool.ts';
import type { Articles } from '../store.ts';

/** Each round is lost to another node's change that went through, or to its turn. */
const roundsMax = 100;
/** So many are lost before the turn is asked for. */
const freeRounds = 3;
/** Between two rounds while another node has the turn: anything up to this. */
const turnPauseMilliseconds = 50;
/** Changes that wait for the one under way, and how long one of them waits. */
const waitingMax = 1_000;
const waitMillisecondsMax = 10_000;

interface Version {
  readonly article: Article;
  readonly version: string;
}

export function createArticles(pool: Pool): Articles {
  const inQueue = createQueue();
  const turn = createArticleTurn(pool);

  const list = (): Promise<Version[]> =>
    pool.readPages(
      (sql) => sql`SELECT version, document FROM inkwell.articles ORDER BY id`,
      toVersion,
    );
  const find = (id: number): Promise<Version | undefined> =>
    pool.readOne(
      (sql) => sql`SELECT version, document FROM inkwell.articles WHERE id = ${id}`,
      toVersion,
    );

  return {
    list: async () => (await list()).map(({ article }) => article),
    find: async (id) => (await find(id))?.article,
    save: (draft) => {
      const { id } = draft;
      return typeof id === 'number' ? put(pool, { ...draft, id }) : add(pool, draft);
    },
    change: (id, change) =>
      inQueue(() =>
        inTurns<Article | undefined>(turn, async () => {
          const before = await find(id);
          if (before === undefined) return { kept: undefined };
          const article = change(before.article);
          return replaceAll({ pool, turn }, [{ ...before, article }], article);
        }),
      ),
    changeAll: (change) =>
      inQueue(() =>
        inTurns(turn, async () => {
          const before = await list();
          const after = change(before.map(({ article }) => article));
          const changed = before.flatMap(({ version, article }, index) => {
            const replacement = after[index] ?? article;
            // One that was not touched is the very same object.
            return replacement === article ? [] : [{ version, article: replacement }];
          });
          return replaceAll({ pool, turn }, changed, undefined);
        }),
      ),
  };
}

async function put(pool: Pool, article: Article): Promise<Article> {
  await pool.write(
    (sql) => sql`INSERT INTO inkwell.articles (id, document)
      VALUES (${article.id}, ${JSON.stringify(article)})
      ON CONFLICT (id) DO UPDATE
      SET document = excluded.document, version = articles.version + 1`,
  );
  return article;
}

/**
 * Under the first value after the last one that is not taken (R15). Where another node stores an
 * article under that value at this very moment, the counter moves on.
 */
function add(pool: Pool, draft: ArticleDraft): Promise<Article> {
  return inRounds(async () => {
    const [row] = await pool.write(
      (sql) => sql`UPDATE inkwell.counters SET value = (
          SELECT min(free) FROM (
            SELECT value + 1 AS free
            UNION ALL SELECT id + 1 FROM inkwell.articles WHERE id > value
          ) AS candidates WHERE NOT EXISTS (SELECT FROM inkwell.articles WHERE id = free)
        ) WHERE name = 'articles' RETURNING value`,
    );
    const article: Article = { ...draft, id: Number(row?.['value']) };
    const { count } = await pool.write(
      (sql) => sql`INSERT INTO inkwell.articles (id, document)
        VALUES (${article.id}, ${JSON.stringify(article)}) ON CONFLICT DO NOTHING`,
    );
    return count === 1 ? { kept: article } : undefined;
  });
}

interface Place {
  readonly pool: Pool;
  readonly turn: ArticleTurn;
}

/**
 * All of them, or nothing where one of them is no longer the version that was read, or where
 * another node has the turn.
 */
async function replaceAll<T>(
  { pool, turn }: Place,
  changed: readonly Version[],
  kept: T,
): Promise<Done<T> | undefined> {
  if (changed.length === 0) return { kept };
  const rows = changed.map(({ article, version }) => {
    return { id: article.id, version, document: JSON.stringify(article) };
  });
  const { count } = await pool.write(
    (sql) => sql`WITH changed AS MATERIALIZED (
        SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
          AS row (id bigint, version bigint, document text)
      ), unchanged AS MATERIALIZED (
        SELECT articles.id FROM inkwell.articles JOIN changed USING (id, version)
        ORDER BY articles.id FOR UPDATE OF articles
      )
      UPDATE inkwell.articles SET document = changed.document, version = articles.version + 1
      FROM changed WHERE articles.id = changed.id AND articles.version = changed.version
        AND (SELECT count(*) FROM unchanged) = ${rows.length}::int
        AND NOT EXISTS (SELECT FROM inkwell.article_turn
          WHERE holder <> ${turn.holder} AND ends > clock_timestamp())`,
  );
  return count === rows.length ? { kept } : undefined;
}

interface Done<T> {
  readonly kept: T;
}
type Round<T> = () => Promise<Done<T> | undefined>;

async function inRounds<T>(round: Round<T>): Promise<T> {
  for (let rounds = 0; rounds < roundsMax; rounds += 1) {
    const done = await round();
    if (done !== undefined) return done.kept;
  }
  throw tooMany();
}

/** A few rounds against the other nodes; then with the turn, once they have let go of it. */
async function inTurns<T>(turn: ArticleTurn, round: Round<T>): Promise<T> {
  let lost = 0;
  let mine = false;
  try {
    return await inRounds(async () => {
      if (lost >= freeRounds) {
        mine = await turn.take();
        if (!mine) {
          await pause(Math.random() * turnPauseMilliseconds);
          return undefined;
        }
      }
      lost += 1;
      return round();
    });
  } finally {
    if (mine) await turn.giveBack();
  }
}

type InQueue = <T>(work: () => Promise<T>) => Promise<T>;

/** One after the other, in the order asked. */
function createQueue(): InQueue {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return (work) => {
    if (waiting >= waitingMax) return Promise.reject(tooMany());
    waiting += 1;
    const since = Date.now();
    const mine = last
      .then(() => {
        if (Date.now() - since > waitMillisecondsMax) throw tooMany();
        return work();
      })
      .finally(() => {
        waiting -= 1;
      });
    // Whoever asked gets the error; the next in the queue only waits for the end.
    last = mine.catch(() => undefined);
    return mine;
  };
}

function tooMany(): AppError {
  return new AppError('overloaded', 'Too many changes of articles.', { retryAfterSeconds: 1 });
}

function toVersion(row: Row): Version {
  const article = JSON.parse(String(row['document'])) as Article; // written here
  return { version: String(row['version']), article };
}
