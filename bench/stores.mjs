/**
 * `node bench/stores.mjs`: what a durable store costs, beside a bare loop on the same engine in the
 * same run; what a POST costs under a key, beside one without (R40); and what the response cache
 * costs a GET beside commits that take long. Build the program and its tests first (`npm test`
 * does). SQLite needs Node 22.13, PostgreSQL its binaries; what is missing is left out.
 *
 * Options: --seconds 2, --rounds 3, --posts 10000.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { driverOptions } from '#support/driver-options.js';
import { allOf } from '#support/lists.js';
import { skipPostgres, startPostgres } from '#support/postgres.js';
import { connect } from '#support/session.js';
import { skipSqlite } from '#support/sqlite.js';
import { openStore } from '../dist/store/open.js';
import { sqliteName } from './fill.mjs';
import { load, median, sessionsOf, start, stop } from './processes.mjs';
import { begin } from './report.mjs';
import { scenarios, send, toLoad } from './scenarios.mjs';

const { options, report } = begin({ seconds: 2, rounds: 3, posts: 10_000 });
const { seconds } = options;
const fastCommits = [
  'fsync=on',
  'shared_preload_libraries=pg_stat_statements',
  'shared_buffers=256MB',
];
const slowCommits = ['fsync=on', 'commit_delay=10000', 'commit_siblings=0'];
const program = join(import.meta.dirname, '../dist/server.js');
const folder = mkdtempSync(join(tmpdir(), 'inkwell-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const text = { title: 'A title', content: 'Some words. '.repeat(20) };
const storeOptions = driverOptions({ connectionsMax: 10 });
const { createId, now } = storeOptions;
const createdAt = now();

const head = ['work', 'bare loop a second', 'store a second', 'share of it, %'];
const row = report.table('Posts created, each durable', head, 0);
if (skipSqlite === false) await measureSqlite();
if (skipPostgres === false) await measurePostgres();
const keyedHead = ['POST /posts', 'without, µs', 'under a key, µs', 'times', 'spread'];
const keyedRow = report.table('CPU time of a POST, of the server and the database', keyedHead);
if (skipSqlite === false) await measureKeys('SQLite', `sqlite://${join(folder, 'keys.db')}`);
if (skipPostgres === false) {
  await withPostgres(async (server, url) => {
    await measureKeys('PostgreSQL', url, () => sessionsOf(server, url));
  });
}
const besideTitle = 'GET of one post on PostgreSQL beside commits of 10 ms';
const besideHead = ['commits of', 'no cache, ms', 'with the cache, ms', 'times', 'spread'];
const besideRow = report.table(besideTitle, besideHead);
if (skipPostgres === false) await withPostgres(measureBesideCommits, slowCommits);
report.end();

async function measureSqlite() {
  const sqlite = await import(sqliteName);
  const bare = new sqlite.DatabaseSync(join(folder, 'bare.db'));
  bare.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE posts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
    content TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL, author_id TEXT) STRICT`);
  const insert = bare.prepare(`INSERT INTO posts (id, title, content, status, created_at, author_id)
    VALUES (?, ?, ?, ?, ?, ?)`);
  const one = () => insert.run(createId(), text.title, text.content, 'DRAFT', createdAt, null);
  const many = () => {
    bare.exec('BEGIN');
    for (let count = 0; count < 64; count += 1) one();
    bare.exec('COMMIT');
  };
  const store = await openStore(`sqlite://${join(folder, 'inkwell.db')}`, storeOptions);
  const create = () => store.posts.create({ ...text, authorId: null });
  await compare(
    'SQLite, 1 writer',
    () => loop(one),
    () => writers(1, create),
  );
  await compare(
    'SQLite, 64 writers',
    async () => 64 * (await loop(many)),
    () => writers(64, create),
  );
  await store.close();
  bare.close();
}

/** @param {(server: Awaited<ReturnType<typeof startPostgres>>, url: string) => Promise<void>} work */
async function withPostgres(work, settings = fastCommits) {
  const server = await startPostgres(settings);
  try {
    await work(server, await server.createDatabase());
  } finally {
    await server.remove();
  }
}

async function measurePostgres() {
  await withPostgres(async (_, url) => {
    const store = await openStore(url, storeOptions);
    const pool = new Pool({ connectionString: url, max: 10 });
    const insert = `INSERT INTO inkwell.posts (id, title, content, status, created_at, author_id)
      VALUES ($1, $2, $3, 'DRAFT', $4, NULL)`;
    const bare = () => {
      const values = [createId(), text.title, text.content, createdAt];
      return pool.query({ name: 'insert', text: insert, values });
    };
    const insertMany = `INSERT INTO inkwell.posts (id, title, content, status, created_at, author_id)
      SELECT *, NULL::uuid FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[])`;
    const cells = [text.title, text.content, 'DRAFT', createdAt];
    const columns = cells.map((cell) => Array(64).fill(cell));
    const bareMany = () => {
      const values = [Array.from({ length: 64 }, () => createId()), ...columns];
      return pool.query({ name: 'many', text: insertMany, values });
    };
    const create = () => store.posts.create({ ...text, authorId: null });
    await compare(
      'PostgreSQL, 1 writer',
      () => writers(1, bare),
      () => writers(1, create),
    );
    await compare(
      'PostgreSQL, 64 writers',
      async () => 64 * (await writers(1, bareMany)),
      () => writers(64, create),
    );
    await pool.end();
    const sql = connect(url);
    await measureList(store, sql);
    await sql.end();
    await store.close();
  });
}

/**
 * The same POST with a key and without, in turns, with few requests at once and with many.
 *
 * @param {string} name
 * @param {string} url
 * @param {() => Promise<() => number>} sessions
 */
async function measureKeys(name, url, sessions = async () => () => 0) {
  const node = await start(program, [], { STORE_URL: url, UPLOAD_DIR: folder });
  const post = scenarios({ token: '', ids: [] })['POST /posts'];
  // Both have a numbered line: a load that prepares one kind faster sends more of it at once, and
  // what comes at once costs less.
  const withLine = (/** @type {string} */ header) => {
    return { ...post, headers: { ...post.headers, [header]: '3ff3d1a4-@' } };
  };
  const [plain, keyed] = [withLine('User-Agent'), withLine('Idempotency-Key')];
  for (const connections of [1, 16]) {
    const cost = async (/** @type {typeof plain} */ request) => {
      const file = join(folder, 'request.json');
      writeFileSync(file, toLoad([request]));
      const databaseTime = await sessions();
      const before = databaseTime();
      const { cpuMicros, count } = await load(node, file, { seconds, connections });
      return cpuMicros + (databaseTime() - before) / 1000 / count;
    };
    // Warm, and all of its sessions are open.
    await cost(plain);
    await cost(keyed);
    const rounds = [];
    while (rounds.length < options.rounds) rounds.push([await cost(plain), await cost(keyed)]);
    const ratios = rounds.map(([without = 0, under = 0]) => under / without);
    const all = [0, 1].map((at) => median(rounds.map((round) => round[at])));
    const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
    keyedRow(`${name}, ${connections} at once`, ...all, median(ratios), spread);
  }
  await stop(node);
}

/**
 * The same GET from a node with the response cache and from one without, in turns, while four
 * writers commit: through the node itself, or in another database of the server.
 *
 * @param {Awaited<ReturnType<typeof startPostgres>>} server
 * @param {string} url
 */
async function measureBesideCommits(server, url) {
  const env = { STORE_URL: url, UPLOAD_DIR: mkdtempSync(join(folder, 'files-')) };
  const nodes = [];
  for (const more of [{ RESPONSE_CACHE_BYTES_MAX: '0' }, {}]) {
    nodes.push(await start(program, [], { ...env, ...more }));
  }
  const create = (/** @type {{ url: string }} */ node) => send(`${node.url}/posts`, text);
  const place = (await create(nodes[0])).headers.get('location') ?? '';
  const file = join(folder, 'read.json');
  writeFileSync(file, toLoad([{ method: 'GET', path: new URL(place, nodes[0].url).pathname }]));
  const other = await server.createDatabase();
  await server.query(other, 'CREATE TABLE other (n int)');
  const sessions = Array.from({ length: 4 }, () => connect(other));
  const insert = async () => {
    const session = sessions.pop();
    await session?.run('INSERT INTO other VALUES (1)');
    if (session) sessions.push(session);
  };
  const kinds = { 'its own writers': create, 'another database': insert };
  for (const [name, write] of Object.entries(kinds)) {
    const measure = async (node) => {
      const loaded = load(node, file, { seconds, connections: 1 });
      const [{ p50 }] = await Promise.all([loaded, writers(4, () => write(node))]);
      return p50;
    };
    for (const node of nodes) await measure(node);
    const rounds = [];
    while (rounds.length < options.rounds) {
      rounds.push([await measure(nodes[0]), await measure(nodes[1])]);
    }
    const ratios = rounds.map(([without = 0, cached = 0]) => cached / without);
    const all = [0, 1].map((at) => median(rounds.map((round) => round[at])));
    const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
    besideRow(name, ...all, median(ratios), spread);
  }
  await Promise.all([...nodes.map(stop), ...sessions.map((session) => session.end())]);
}

/**
 * All posts with their authors and comments, beside one join that a person would write.
 *
 * @param {import('../dist/store/store.js').Store} store
 * @param {import('#support/session.js').Session} sql
 */
async function measureList(store, sql) {
  await sql`TRUNCATE inkwell.posts CASCADE`;
  await sql`CREATE EXTENSION pg_stat_statements`;
  await sql`INSERT INTO inkwell.authors (id, name, email, created_at)
    SELECT gen_random_uuid(), 'Author ' || n, 'a@example.org', ${createdAt}
    FROM generate_series(1, 100) AS n`;
  await sql`INSERT INTO inkwell.posts (id, title, content, status, created_at, author_id)
    SELECT gen_random_uuid(), 'Post ' || n, ${text.content}, 'DRAFT', ${createdAt},
      (SELECT id FROM inkwell.authors ORDER BY id LIMIT 1 OFFSET n % 100)
    FROM generate_series(1, ${options.posts}::int) AS n`;
  await sql`INSERT INTO inkwell.comments (id, post_id, content, created_at)
    SELECT gen_random_uuid(), id, 'A comment', ${createdAt}
    FROM inkwell.posts, generate_series(1, 5)`;
  await sql`ANALYZE`;
  const list = async () => {
    const posts = await allOf(store.posts.all);
    return Promise.all(
      posts.map(async (post) => {
        const [author, comments] = await Promise.all([
          store.authors.find(post.authorId ?? ''),
          allOf(store.comments.ofPost(post.id)),
        ]);
        return { ...post, author, comments };
      }),
    );
  };
  const joined = () => sql`SELECT post.*, author.name, author.email, comment.id AS comment_id,
      comment.content AS comment_content, comment.created_at AS comment_created_at
    FROM inkwell.posts AS post LEFT JOIN inkwell.authors AS author ON author.id = post.author_id
    LEFT JOIN inkwell.comments AS comment ON comment.post_id = post.id
    ORDER BY post.seq DESC, comment.seq`;
  await list();
  await sql`SELECT pg_stat_statements_reset()`;
  await list();
  const [{ calls }] = await sql`SELECT sum(calls)::int AS calls FROM pg_stat_statements
    WHERE query LIKE '%inkwell.%' AND query NOT LIKE '%pg_current_snapshot%'`;
  await compare(
    `lists of ${options.posts} posts with authors and 5 comments each, ${calls} statements`,
    () => writers(1, joined),
    () => writers(1, list),
  );
}

async function compare(name, bare, ours) {
  let [bestBare, bestOurs] = [0, 0];
  for (let round = 0; round < options.rounds; round += 1) {
    bestBare = Math.max(bestBare, await bare());
    bestOurs = Math.max(bestOurs, await ours());
  }
  row(name, bestBare, bestOurs, (100 * bestOurs) / bestBare);
}

/** Runs of a synchronous act in a second. */
async function loop(act) {
  const begun = performance.now();
  let count = 0;
  for (; performance.now() < begun + seconds * 1000; count += 1) act();
  return (count * 1000) / (performance.now() - begun);
}

/** Acts in a second, of so many that each wait for their own answer. */
async function writers(number, act) {
  const begun = performance.now();
  const end = begun + seconds * 1000;
  let count = 0;
  const work = async () => {
    while (performance.now() < end) {
      await act();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: number }, work));
  return (count * 1000) / (performance.now() - begun);
}
