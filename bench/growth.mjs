/**
 * `npm run bench:growth`: the same operations over stores of growing size. First CPU time per
 * operation, of a node and of the database; then what a long read takes: its time, the memory over
 * the idle server's, and the longest wait of another client. Nothing is answered from the cache.
 *
 * Options: --posts 10000,100000,1000000, --stores memory,sqlite,postgres, --nodes 1,3 (PostgreSQL),
 * --seconds 1.
 * A tenth of the posts has one author, and as many comments are one post's; on PostgreSQL, whose
 * plans depend on the size of a table, most others have two. Build the program and its tests first
 * (`npm test` does). SQLite needs Node 22.13, PostgreSQL its binaries.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skipPostgres, startPostgres } from '#support/postgres.js';
import { skipSqlite } from '#support/sqlite.js';
import { fillMemory, fillPostgres, fillSqlite, toId } from './fill.mjs';
import { idleMemory, load, probe, sessionsOf, start, stop, topMemory } from './processes.mjs';
import { begin } from './report.mjs';
import { text, toLoad } from './scenarios.mjs';

const { options, report } = begin({
  posts: '10000,100000,1000000',
  stores: 'memory,sqlite,postgres',
  nodes: '1,3',
  seconds: 1,
});
const folder = mkdtempSync(join(tmpdir(), 'inkwell-growth-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const program = join(import.meta.dirname, '../dist/server.js');
const settings = { RESPONSE_CACHE_BYTES_MAX: '0', UPLOAD_DIR: folder, DEMO_DATA: 'false' };
const json = { 'Content-Type': 'application/json' };
/** @type {any[][]} */
const costs = [];
/** @type {any[][]} */
const reads = [];

for (const posts of options.posts.split(',').map(Number)) {
  const stores = options.stores.split(',');
  if (stores.includes('memory')) await measureMemory(posts);
  if (stores.includes('sqlite') && skipSqlite === false) await measureSqlite(posts);
  if (stores.includes('postgres') && skipPostgres === false) await measurePostgres(posts);
}
tell(
  'Microseconds of CPU time for one operation',
  ['store, posts', 'MiB', ...operations(['', '', '']).map(({ name }) => name)],
  costs,
);
tell(
  'What a long read takes',
  ['store, posts', 'read', 'response', 'ms', 'MiB over idle', 'longest wait of others, ms'],
  reads,
);
report.end();

async function measureMemory(posts) {
  const heap = {
    MEMORY_STORE_BYTES_MAX: String(8 * 1024 ** 3),
    NODE_OPTIONS: '--max-old-space-size=8192',
  };
  const node = await start(program, [], { ...settings, ...heap, DEMO_DATA: 'true' });
  const ids = await fillMemory(node.url, posts);
  await measure(`memory, ${posts}`, {
    nodes: [node],
    ids: [0, 1 / 3, 2 / 3].map((share) => ids[Math.floor(posts * share)]),
  });
  await stop(node);
}

async function measureSqlite(posts) {
  const file = join(folder, `posts-${posts}.db`);
  const env = { ...settings, STORE_URL: `sqlite://${file}` };
  await stop(await start(program, [], env));
  await fillSqlite(file, posts);
  const node = await start(program, [], env);
  await measure(`SQLite, ${posts}`, { nodes: [node], ids: idsOf(posts) });
  await stop(node);
}

async function measurePostgres(posts) {
  const server = await startPostgres(['fsync=on', 'shared_buffers=256MB']);
  try {
    const url = await server.createDatabase();
    const env = { ...settings, STORE_URL: url };
    await stop(await start(program, [], env));
    await fillPostgres(url, posts);
    for (const count of options.nodes.split(',').map(Number)) {
      const nodes = [];
      while (nodes.length < count) nodes.push(await start(program, [], env));
      // Ten statements of a node wait for each other: each is a process, there from now on.
      await Promise.all(nodes.map((node) => fetch(`${node.url}/posts?limit=1`)));
      const sessions = () => sessionsOf(server, url);
      const ids = idsOf(posts);
      const name = `PostgreSQL, ${posts}${count > 1 ? `, ${count} nodes` : ''}`;
      await measure(name, { nodes, ids, sessions });
      await Promise.all(nodes.map(stop));
    }
  } finally {
    await server.remove();
  }
}

function idsOf(posts) {
  return [1, Math.floor(posts / 3), Math.floor((posts * 2) / 3)].map(toId);
}

/**
 * `ids`: of the post with most comments and the author of many posts, and of two without.
 *
 * @param {string} name
 * @param {{ nodes: any[], ids: any, sessions?: () => Promise<() => number> }} of
 */
async function measure(name, { nodes, ids, sessions }) {
  console.error(name);
  const row = [name, await idleMemory(nodes[0])];
  for (const operation of operations(ids)) row.push(await costOf(operation, nodes, sessions));
  costs.push(row);
  if (nodes.length > 1) return;
  const idle = await idleMemory(nodes[0]);
  for (const [read, act] of Object.entries(longReads(nodes[0], ids[0]))) {
    let outcome;
    const begun = performance.now();
    let took;
    let delays;
    const top = await topMemory(nodes[0], async () => {
      delays = await probe(nodes[0], async () => {
        outcome = await act();
        took = performance.now() - begun;
      });
    });
    reads.push([name, read, outcome, took, top - idle, delays.max]);
  }
}

/** What is asked again and again. */
function operations([most, id, other]) {
  const get = (path) => ({ method: 'GET', path });
  const byId = `{ postById(postId: "${id}") { id title comments { content } } }`;
  const addComment = 'mutation($i: CommentInput!) { addComment(commentInput: $i) }';
  const variables = { i: { postId: other, content: text } };
  const graphql = (body) => ({
    method: 'POST',
    path: '/graphql',
    headers: json,
    body: JSON.stringify(body),
  });
  return [
    { name: 'GET /posts/{id}', request: get(`/posts/${id}`) },
    { name: 'GET /posts?limit=20', request: get('/posts?limit=20') },
    { name: '&status=PUBLISHED', request: get('/posts?limit=20&status=PUBLISHED') },
    { name: '&after', request: get(`/posts?limit=20&status=PUBLISHED&after=${most}`) },
    { name: '&status=DRAFT', request: get(`/posts?limit=20&status=DRAFT&after=${other}`) },
    { name: '/posts/{id}/comments?limit=20', request: get(`/posts/${most}/comments?limit=20`) },
    { name: 'postById', request: graphql({ query: byId }) },
    { name: 'addComment', request: graphql({ query: addComment, variables }) },
  ];
}

/** Microseconds of CPU time for one operation: of its node and, behind it, of the database. */
async function costOf({ request }, nodes, sessions) {
  const file = join(folder, 'request.json');
  writeFileSync(file, toLoad([request]));
  const loadAll = () =>
    Promise.all(
      nodes.map((node) => load(node, file, { seconds: options.seconds, connections: 16 })),
    );
  await loadAll(); // warm
  const databaseTime = await sessions?.();
  const before = databaseTime?.() ?? 0;
  const results = await loadAll();
  const beyond = (databaseTime?.() ?? 0) - before;
  const count = results.reduce((sum, result) => sum + result.count, 0);
  const own = results.reduce((sum, result) => sum + result.count * result.cpuMicros, 0) / count;
  return own.toFixed(0) + (databaseTime ? ` + ${(beyond / 1000 / count).toFixed(0)}` : '');
}

/** At once; gives the responses that differ. */
function many(count, act) {
  return async () => [...new Set(await Promise.all(Array.from({ length: count }, act)))].join(', ');
}

/** Each gives what was answered. */
function longReads({ url }, id) {
  const list = (path) => () => outcomeOf(fetch(url + path));
  const query = (document) => () =>
    outcomeOf(
      fetch(`${url}/graphql`, {
        method: 'POST',
        headers: json,
        body: JSON.stringify({ query: document }),
      }),
    );
  return {
    'GET /posts': list('/posts'),
    'four at once': many(4, list('/posts')),
    'GET /posts/{id}/comments': list(`/posts/${id}/comments`),
    allPosts: query('{ allPosts { id } }'),
    'ten at once': many(10, query('{ allPosts { id } }')),
    'author.posts': query(`{ postById(postId: "${id}") { author { posts { id } } } }`),
  };
}

async function outcomeOf(pending) {
  const { status, body } = await pending;
  let bytes = 0;
  let first = '';
  for await (const chunk of body) {
    first += Buffer.from(chunk).toString('latin1', 0, 1000 - first.length);
    bytes += chunk.length;
  }
  if (first.includes('"errors":')) return 'refused';
  return status === 200 ? `${(bytes / 1024 ** 2).toFixed(1)} MiB` : String(status);
}

function tell(title, head, rows) {
  const row = report.table(title, head, 0);
  for (const cells of rows) row(...cells);
}
