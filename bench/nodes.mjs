/**
 * `node bench/nodes.mjs`: what nodes on one PostgreSQL cost each other. CPU time of a node for each
 * comment that is stored at another one, and of a node for each post that it stores itself, alone
 * and among three. Build the program and its tests first (`npm test` does). Linux only.
 *
 * Options: --seconds 4, --rate 300 (comments a second), --dist DIR (another build). What a comment
 * costs a node with a subscriber is the row `one at the second`, in the column of the second node.
 */

import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { startPostgres } from '#support/postgres.js';
import { cpuNanoseconds, start, stop } from './processes.mjs';
import { begin } from './report.mjs';

const dist = join(import.meta.dirname, '../dist');
const { options, report } = begin({ seconds: 4, rate: 300, dist });
const milliseconds = options.seconds * 1000;
const { rate } = options;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

const postgres = await startPostgres();
const env = { STORE_URL: await postgres.createDatabase() };
const nodes = [await startNode()];
const posts = report.table('POST /posts', ['nodes', 'pace', 'posts', 'µs each'], 0);

try {
  await measurePosts('1 node');
  nodes.push(await startNode(), await startNode());
  await measurePosts('3 nodes');
  const at = ['first', 'second', 'third'];
  const head = [...at.map((one) => `µs each, ${one}`), ...at.map((one) => `idle µs a ms, ${one}`)];
  const row = report.table(
    'Comments at the first node',
    ['heard by', 'pace', 'comments', ...head],
    1,
  );
  const post = await createPost(nodes[0]);
  await measureComments(row, 'nobody', post);
  const socket = await subscribe(nodes[1], post);
  await measureComments(row, 'one at the second', post);
  socket.terminate();
  report.end();
} finally {
  agent.destroy();
  await Promise.all(nodes.map(stop));
  await postgres.remove();
}

function startNode() {
  return start(join(options.dist, 'server.js'), [], env);
}

/** Posts at a pace that all nodes share evenly, and 24 at once. */
async function measurePosts(name) {
  const body = { title: 'A title', content: 'Some words. '.repeat(20) };
  const add = (at) => send(nodes[at % nodes.length], '/posts', body);
  const ways = { [`${rate} a second`]: () => paced(add), '24 at once': () => atOnce(24, add) };
  for (const [pace, run] of Object.entries(ways)) {
    await run();
    const before = nodes.map(cpuOf);
    const count = await run();
    const cpu = nodes.reduce((sum, node, at) => sum + cpuOf(node) - before[at], 0);
    posts(name, pace, count, cpu / 1000 / count);
  }
}

/** Comments at the first node; what the others spend on them. */
async function measureComments(row, name, post) {
  const add = () => send(nodes[0], `/posts/${post}/comments`, { content: 'A comment' });
  // Many first: otherwise the few are measured while their code is still being compiled.
  const ways = { '8 at once': () => atOnce(8, add), [`${rate} a second`]: () => paced(add) };
  for (const [pace, run] of Object.entries(ways)) {
    await run();
    const idle = await spentWhile(() => pause(milliseconds));
    let count = 0;
    const busy = await spentWhile(async () => (count = await run()));
    const each = busy.map((cpu, at) => (cpu - (idle[at] ?? 0)) / 1000 / count);
    row(name, pace, count, ...each, ...idle.map((cpu) => cpu / 1000 / milliseconds));
  }
}

async function spentWhile(run) {
  const before = nodes.map(cpuOf);
  await run();
  return nodes.map((node, at) => cpuOf(node) - before[at]);
}

function cpuOf({ child }) {
  return cpuNanoseconds(child.pid);
}

async function paced(act) {
  const begun = performance.now();
  const acts = [];
  for (;;) {
    const passed = performance.now() - begun;
    if (passed >= milliseconds) break;
    while (acts.length < (passed / 1000) * rate) acts.push(act(acts.length));
    await pause(1);
  }
  await Promise.all(acts);
  return acts.length;
}

async function atOnce(writers, act) {
  const end = performance.now() + milliseconds;
  let count = 0;
  const write = async (at) => {
    for (; performance.now() < end; count += 1) await act(at);
  };
  await Promise.all(Array.from({ length: writers }, (_, at) => write(at)));
  return count;
}

function send(node, path, body) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(text),
    };
    request(`${node.url}${path}`, { method: 'POST', agent, headers }, (response) => {
      if (response.statusCode >= 300) reject(new Error(`status ${response.statusCode}`));
      response.resume().once('end', () => resolve(response.headers.location));
    })
      .once('error', reject)
      .end(text);
  });
}

async function createPost(node) {
  const location = await send(node, '/posts', { title: 'a', content: 'b' });
  return location.split('/').at(-1);
}

/** Resolves when it hears of comments. */
async function subscribe(node, post) {
  const url = `${node.url.replace('http', 'ws')}/graphql`;
  const socket = new WebSocket(url, 'graphql-transport-ws');
  const query = 'subscription { commentAdded { id content } }';
  const heard = new AbortController();
  socket.once('open', () => socket.send(JSON.stringify({ type: 'connection_init' })));
  socket.on('message', (data) => {
    const { type } = JSON.parse(/** @type {Buffer} */ (data).toString());
    if (type === 'next') heard.abort();
    if (type !== 'connection_ack') return;
    socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
  });
  while (!heard.signal.aborted) {
    await send(nodes[0], `/posts/${post}/comments`, { content: 'Is anybody there?' });
    await pause(100);
  }
  return socket;
}
