/**
 * `npm run bench:peer`: the build beside the same service on Fastify and Mercurius (bench/peer/), in
 * memory, on SQLite and on PostgreSQL, in turns, so that a ratio holds although the machine's speed
 * drifts. CPU time is that of the server and, on PostgreSQL, of the processes of the database too.
 * Build the program and its tests first (`npm test` does). Linux only. SQLite needs Node 22.13,
 * PostgreSQL its binaries; what is missing is left out.
 *
 * Options: --rounds 5, --seconds 1, --warm 2 (seconds before it is measured), --posts 500 (in a
 * database; in memory there are 100), --stores memory,sqlite,postgres, --only <part of a name>.
 */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skipPostgres, startPostgres } from '#support/postgres.js';
import { skipSqlite } from '#support/sqlite.js';
import { cpuNanoseconds, load, median, start, stop } from './processes.mjs';
import { begin } from './report.mjs';
import { mix, scenarios, seed, send, text, toLoad } from './scenarios.mjs';
import { serviceSettings } from './service.mjs';

const { options, report } = begin({
  rounds: 5,
  seconds: 1,
  warm: 2,
  posts: 500,
  stores: 'memory,sqlite,postgres',
  only: '',
});
const program = join(import.meta.dirname, '../dist/server.js');
const peer = join(import.meta.dirname, 'peer');
const folder = mkdtempSync(join(tmpdir(), 'inkwell-peer-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

if (!existsSync(join(peer, 'node_modules'))) {
  const args = ['ci', '--prefix', peer, '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}

const wanted = options.stores.split(',');
if (wanted.includes('memory')) {
  await compareStore('In memory', { posts: 100, connections: 32, rows: memoryRows });
}
const durable = { posts: options.posts, connections: 16, rows: durableRows };
if (wanted.includes('sqlite') && skipSqlite === false) {
  const urlOf = (name) => `sqlite://${join(folder, `${name}.db`)}`;
  await compareStore('SQLite', { ...durable, urlOf });
}
if (wanted.includes('postgres') && skipPostgres === false) await comparePostgres();
report.end(versions());

async function comparePostgres() {
  const server = await startPostgres(['fsync=on', 'shared_buffers=256MB']);
  try {
    const urls = await Promise.all(servers('').map(() => server.createDatabase()));
    const names = servers('').map(({ name }) => name);
    const urlOf = (name) => urls[names.indexOf(name)];
    // Those of the server that wait for work, and those that serve connections.
    const processes = async () => {
      const found = await server.query(
        server.url('postgres'),
        'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
      );
      return found.map(({ pid }) => pid);
    };
    await compareStore('PostgreSQL', { ...durable, urlOf, processes });
  } finally {
    await server.remove();
  }
}

/** What is measured, the peer first: `has` says which rows make sense. */
function servers(url) {
  const stored = { STORE_URL: url };
  return [
    { name: 'peer', file: join(peer, 'server.mjs'), env: stored },
    { name: 'Inkwell', file: program, env: stored },
    {
      name: 'cache off',
      file: program,
      env: { ...stored, RESPONSE_CACHE_BYTES_MAX: '0' },
      has: ({ isRead }) => isRead,
    },
    {
      name: 'peer, JIT',
      file: join(peer, 'server.mjs'),
      env: { ...stored, JIT: '1' },
      has: ({ isGraphql }) => isGraphql,
    },
  ];
}

/**
 * @param {string} title
 * @param {{ posts: number, connections: number, rows: (of: any) => any, urlOf?: (name: string) => string, processes?: () => Promise<any[]> }} of
 */
async function compareStore(title, { posts, connections, rows, urlOf = () => '', processes }) {
  const running = [];
  for (const { name } of servers('')) {
    const { file, env, has = () => true } = servers(urlOf(name)).find((one) => one.name === name);
    const place = join(folder, `${title} ${name}`);
    mkdirSync(place);
    const isPeer = file !== program;
    const settings = isPeer ? { UPLOAD_DIR: place } : await serviceSettings(place);
    const server = await start(file, [], { NODE_ENV: 'production', ...settings, ...env });
    const { token = '', ids } = isPeer
      ? await seedPeer(server.url, posts)
      : await seed(server.url, posts);
    running.push({ name, has, server, requests: rows({ token, ids }) });
  }
  const head = ['request', 'peer µs', ...running.slice(1).map(({ name }) => name)];
  const row = report.table(title, head);
  for (const name of Object.keys(running[0].requests)) {
    if (!name.includes(options.only)) continue;
    const cells = await compareRow(name, running, { connections, processes });
    row(name, ...cells);
  }
  for (const { server } of running) await stop(server);
}

/** Microseconds of the peer, and the others as multiples: medians of rounds. */
async function compareRow(name, running, { connections, processes }) {
  const taking = running.filter(({ has, requests }) => has(requests[name]));
  const files = taking.map(({ requests }, at) => {
    const file = join(folder, `request-${at}.json`);
    writeFileSync(file, toLoad(requests[name].requests));
    return file;
  });
  const micros = async (at, seconds) => {
    const before = await timesOf(processes);
    const { cpuMicros, count } = await load(taking[at].server, files[at], { seconds, connections });
    let database = 0;
    for (const [pid, time] of await timesOf(processes)) database += time - (before.get(pid) ?? 0);
    return cpuMicros + database / 1000 / count;
  };
  for (const at of taking.keys()) await micros(at, options.warm);
  const rounds = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const times = [];
    for (const at of taking.keys()) times.push(await micros(at, options.seconds));
    rounds.push(times);
  }
  const ratioOf = (server) => {
    const at = taking.indexOf(server);
    return at === -1 ? null : median(rounds.map((times) => times[at] / times[0]));
  };
  return [median(rounds.map(([first]) => first)), ...running.slice(1).map(ratioOf)];
}

/** CPU time so far by process; those that have ended meanwhile are left out. */
async function timesOf(processes) {
  const times = new Map();
  for (const pid of (await processes?.()) ?? []) {
    try {
      times.set(pid, cpuNanoseconds(pid));
    } catch {
      // It has ended since it was listed.
    }
  }
  return times;
}

/** As `seed` does it with Inkwell, where a login names the author. */
async function seedPeer(url, posts) {
  const ids = [];
  for (let number = 0; number < posts; number += 1) {
    const post = { title: `Post ${number} of the measured list`, content: `${text} ${text}` };
    const location = (await send(`${url}/posts`, post)).headers.get('location');
    ids.push(location.split('/').at(-1));
    for (let comment = 0; comment < 5; comment += 1) {
      await send(`${url}${location}/comments`, { content: text });
    }
  }
  return { ids };
}

/** Name → requests in turns, and what kind they are. Those that write come last. */
function memoryRows(seeded) {
  const all = scenarios(seeded);
  return {
    'GET /hello': { requests: [all['GET /hello']] },
    'GET /posts/{id}': { requests: [all['GET /posts/{id}']] },
    'GET /posts, 100 posts': { requests: [all['GET /posts, 100 posts']], isRead: true },
    'allPosts with author, comments': graphql([all['GraphQL allPosts, 100 posts']]),
    'postById with author, comments': graphql([all['GraphQL postById']]),
    'ten postById in a batch': graphql([all['GraphQL batch of 10']]),
    'upload of 1 MiB': { requests: [all['upload of 1 MiB']] },
    'PATCH /api/articles/{id}': { requests: [all['PATCH /api/articles/1']] },
    'POST /posts': { requests: [all['POST /posts']] },
    createPost: { ...graphql([all['GraphQL createPost']]), isRead: false },
  };
}

function graphql(requests) {
  return { requests, isRead: true, isGraphql: true };
}

function durableRows({ ids }) {
  const json = { 'Content-Type': 'application/json' };
  const get = (path) => ({ method: 'GET', path, headers: {} });
  const post = (path, body) => ({
    method: 'POST',
    path,
    headers: json,
    body: JSON.stringify(body),
  });
  const fields = '{ id title content author { name } comments { id content } }';
  const byId = (id) => {
    const query = `query($id: String!) { postById(postId: $id) ${fields} }`;
    return post('/graphql', { query, variables: { id } });
  };
  const page = post('/graphql', { query: `{ allPosts(first: 20) ${fields} }` });
  const comment = (id) => post(`/posts/${id}/comments`, { content: text });
  // Nothing that is read grows: a page shows the posts that were created last.
  const [commented, read] = [ids.slice(0, ids.length / 2), ids.slice(ids.length / 2)];
  const besideOthers = (every) =>
    graphql(
      read.flatMap((id, at) =>
        at % every === 0 ? [byId(id), comment(commented[at % commented.length])] : [byId(id)],
      ),
    );
  const list = get('/posts?limit=20');
  return {
    'GET /posts/{id}': { requests: ids.map((id) => get(`/posts/${id}`)), isRead: true },
    'GET /posts?limit=20': { requests: [list], isRead: true },
    'the same behind a post': {
      requests: ids.slice(ids.length / 2).map((id) => get(`/posts?limit=20&after=${id}`)),
      isRead: true,
    },
    'allPosts(first: 20), all fields': graphql([page]),
    'postById with author, comments': graphql(ids.map(byId)),
    'postById beside 1 % comments on others': besideOthers(100),
    'postById beside 10 % comments on others': besideOthers(10),
    'a page beside 10 % comments': { requests: besideComments(list), isRead: true },
    'allPosts beside 10 % comments': graphql(besideComments(page)),
    'POST …/comments': { requests: ids.map(comment) },
    'POST /posts': { requests: [post('/posts', { title: 'A new post', content: text })] },
  };

  /** On posts that the page does not show. */
  function besideComments(request) {
    return ids.slice(0, 20).flatMap((id) => mix(request, comment(id), 10));
  }
}

/** Of the packages that the peer runs on. */
function versions() {
  const names = ['fastify', 'mercurius', 'graphql', 'pg'];
  return Object.fromEntries(
    names.map((name) => {
      const file = join(peer, 'node_modules', name, 'package.json');
      return [name, JSON.parse(readFileSync(file, 'utf8')).version];
    }),
  );
}
