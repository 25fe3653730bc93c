/**
 * `npm run bench:attacks`: how long others wait beside attacks of one shape each, by anonymous
 * clients, with the default settings. For each shape a server, an attacker, two clients that ask
 * for /hello, and a bare `node:http` server, which the second of them asks at the same moment: what
 * that takes is the machine's share. `own`: without the time for which the machine let the server
 * wait for a processor. Then what honest clients were refused, where the attack aims at
 * them, and the most memory beside what the server says that it takes at most.
 *
 * Options: --shapes all (or names: T1-escaped,T4-batch), --store memory (sqlite, postgres), --heap 0
 * (MiB; 0: as Node has it), --dist DIR (another build), --connections 40, --seconds 8,
 * --posts 300000 (of T6), --comments 500000 (of T9). Build the program and its tests first.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startPostgres } from '#support/postgres.js';
import { runProgram } from '#support/program.js';
import { documents, longTitle } from '#support/turn-attacks.js';
import { besides } from './beside.mjs';
import { addComment, authorize, createPost, mutate } from './fill.mjs';
import { probe, start, stop, topMemory } from './processes.mjs';
import { begin } from './report.mjs';
import { send } from './scenarios.mjs';
import { serviceSettings } from './service.mjs';
import { findShapes, shapes } from './shapes.mjs';

const { options, report } = begin({
  shapes: 'all',
  store: 'memory',
  heap: 0,
  dist: join(import.meta.dirname, '../dist'),
  connections: 40,
  seconds: 8,
  posts: 300_000,
  comments: 500_000,
});
const folder = mkdtempSync(join(tmpdir(), 'inkwell-attacks-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

await main();

async function main() {
  const names = findShapes(options.shapes);
  const store = await openStore();
  const bare = await start(join(import.meta.dirname, 'bare-server.mjs'), [bareFile()], {});
  const delays = ['p50', 'p99', 'max'];
  const head = [
    'shape',
    ...delays,
    'own p99',
    'own max',
    ...delays.map((name) => `bare ${name}`),
    'honest requests',
    'refused',
    'longest ms',
    'MiB',
    'of MiB',
  ];
  const heap = options.heap === 0 ? 'the heap of Node' : `a heap of ${options.heap} MiB`;
  const row = report.table(`/hello in ms beside attacks: ${options.store}, ${heap}`, head, 1);
  try {
    for (const name of names) row(name, ...(await measure(name, { store, bare })));
  } finally {
    await store.end();
  }
  await stop(bare);
  report.end();
}

/** Where each shape gets a database of its own. */
async function openStore() {
  if (options.store !== 'postgres') {
    const toUrl = (own) => `sqlite://${join(own, 'inkwell.db')}`;
    return { toUrl: options.store === 'sqlite' ? toUrl : () => undefined, end: async () => {} };
  }
  const server = await startPostgres(['fsync=on', 'max_connections=50']);
  return { toUrl: () => server.createDatabase(), end: () => server.remove() };
}

function bareFile() {
  const file = join(folder, 'bare.json');
  const hello = { status: 200, headers: {}, body: Buffer.from('Hello').toString('base64') };
  writeFileSync(file, JSON.stringify({ 'GET /hello': hello }));
  return file;
}

/** The cells of its row. */
async function measure(name, { store, bare }) {
  console.error(name);
  /** @type {(() => Promise<void>)[]} */
  const ends = [];
  try {
    const { service, memoryMaxMiB } = await startService(name, store, ends);
    return [...(await attack(name, { service, bare })), memoryMaxMiB];
  } finally {
    for (const end of ends) await end();
  }
}

async function attack(name, { service, bare }) {
  const { beside } = shapes[name];
  const target = await fill(service.url, shapes[name]);
  let took;
  let bareTook;
  let served;
  const run = async () => {
    const attacker = startAttacker(name, { port: service.port, ...target });
    const over = AbortSignal.timeout(options.seconds * 1000);
    if (beside === undefined) await new Promise((end) => over.addEventListener('abort', end));
    else served = await besides[beside]({ port: service.port, post: target.honest, over });
    attacker.stdin.end();
  };
  const top = await topMemory(service, async () => {
    bareTook = await probe(bare, async () => {
      took = await probe(service, run);
    });
  });
  if (service.child.exitCode !== null) throw new Error(`${name}: the server has ended`);
  const honest = served ? [served.asked, served.refused, served.longest] : ['', '', ''];
  const toWaits = ({ p50, p99, max }) => [p50, p99, max];
  const mine = [...toWaits(took), took.own.p99, took.own.max];
  return [...mine, ...toWaits(bareTook), ...honest, top];
}

async function startService(name, store, ends) {
  const own = mkdtempSync(join(folder, `${name}-`));
  const url = await store.toUrl(own);
  const program = await runProgram(
    { after: (end) => ends.push(end) },
    {
      file: resolve(options.dist, 'server.js'),
      folder: own,
      flags: options.heap === 0 ? [] : [`--max-old-space-size=${options.heap}`],
      env: {
        ...(await serviceSettings(own)),
        ...shapes[name].env,
        ...(url !== undefined && { STORE_URL: url }),
      },
    },
  );
  const { line, ...place } = await program.listening();
  const { memoryMaxMiB } = JSON.parse(line);
  return { memoryMaxMiB, service: { ...place, child: program.child } };
}

function startAttacker(shape, target) {
  const argument = JSON.stringify({ shape, connections: options.connections, target });
  const args = [join(import.meta.dirname, 'attacker.mjs'), argument];
  return spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'inherit'] });
}

/**
 * Stores what the shape needs. Returns an attacked post, one of honest clients, and a token.
 *
 * @param {string} url
 * @param {import('./shapes.mjs').Shape} shape
 */
async function fill(url, { stored, env }) {
  const headers = await authorize(url);
  const create = async (count) => {
    const ids = [];
    while (ids.length < count) {
      const some = Array(Math.min(1000, count - ids.length)).fill(createPost);
      ids.push(...(await mutate(url, some, headers)));
    }
    return ids;
  };
  const [honest] = await create(1);
  const posts = await create(stored === 'posts' ? options.posts : 1);
  if (stored === 'thousand') await create(1000);
  if (stored === 'articles') {
    for (const make of Object.values(documents)) {
      await send(`${url}/api/articles`, JSON.parse(make()), headers);
    }
  }
  for (let left = stored === 'titles' ? 40 : 0; left > 0; left -= 1) {
    await send(`${url}/posts`, { title: longTitle, content: 'c' }, headers);
  }
  for (let left = stored === 'comments' ? options.comments : 0; left > 0; left -= 1000) {
    await mutate(url, Array(Math.min(1000, left)).fill(addComment(posts[0])), headers);
  }
  const token = headers.Authorization.slice('Bearer '.length);
  return { honest, posts: posts.slice(0, 1), ...(env?.REQUIRE_AUTH && { token }) };
}
