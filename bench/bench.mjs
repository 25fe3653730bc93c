/**
 * `npm run bench`: the build beside a bare `node:http` server that writes the same bytes, in turns
 * (A B A B …), so that a ratio holds although the machine's speed drifts. CPU time comes from
 * Linux's /proc; elsewhere only rates are printed.
 *
 * Options: --rounds 5, --seconds 1, --connections 16, --only <part of a name>, --anew (no response
 * cache).
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hashPassword } from '../dist/auth/password.js';
import { idleMemory, load, median, start, stop } from './processes.mjs';
import { scenarios, seed, toWire } from './scenarios.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    connections: { type: 'string', default: '16' },
    only: { type: 'string', default: '' },
    anew: { type: 'boolean', default: false },
  },
});
/** What V8 compiles for validation and uploads takes so long. */
const warmSeconds = 4;
const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'inkwell-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const settings = {
  DEMO_DATA: 'false',
  JWT_SECRET: 'a secret that only this benchmark knows',
  TOKEN_TTL_SECONDS: '86400',
  UPLOAD_DIR: folder,
  USERS_FILE: join(folder, 'users.json'),
  ...(options.anew && { RESPONSE_CACHE_BYTES_MAX: '0' }),
};
const user = { username: 'user', email: 'user@example.org', roles: ['USER'] };
const passwordHash = await hashPassword('password');
writeFileSync(settings.USERS_FILE, JSON.stringify([{ ...user, passwordHash }]));

await main();

async function main() {
  const names = Object.keys(scenarios({ ids: [] }));
  const wanted = names.filter((name) => name.toLowerCase().includes(options.only.toLowerCase()));
  const file = join(folder, 'answers.json');

  console.log(`Node ${process.version}, ${process.platform}, ${cpus()[0]?.model ?? 'unknown CPU'}`);
  console.log(
    '| scenario | bare µs | Inkwell µs | ratio | requests/s | bare p50 ms | p50 ms | p99 ms |',
  );
  console.log('|---|---:|---:|---:|---:|---:|---:|---:|');
  for (const name of wanted) {
    // Servers of its own: what one scenario writes is not read in the next.
    const service = await start(join(root, 'dist/server.js'), [], settings);
    const request = scenarios(await seed(service.url))[name];
    const { write } = request;
    const written = write === undefined ? {} : await record(service.url, write);
    const responses = { ...written, ...(await record(service.url, request)) };
    writeFileSync(file, JSON.stringify(responses));
    const bare = await start(join(root, 'bench/bare-server.mjs'), [file], {});
    console.log(await compare(name, request, { bare, service }));
    await stop(bare);
    await stop(service);
  }
  console.log(await starts(file));
}

/** The service's own response, for the bare server to send. */
async function record(url, request) {
  const { method, path, headers, body } = request;
  const numbered = typeof body === 'string' ? body.replaceAll('@', '0') : body;
  const response = await fetch(url + path, { method, headers, body: numbered });
  const kept = [...response.headers].filter(
    ([name]) => !['date', 'connection', 'keep-alive'].includes(name),
  );
  const bytes = Buffer.from(await response.arrayBuffer());
  // GraphQL refuses with 200.
  const isRefused = !response.ok || bytes.subarray(0, 9).toString() === '{"errors"';
  if (isRefused) throw new Error(`${method} ${path}: ${response.status} ${bytes.toString()}`);
  const headersKept = Object.fromEntries(kept);
  const content = bytes.toString('base64');
  return {
    [`${method} ${path}`]: { status: response.status, headers: headersKept, body: content },
  };
}

async function compare(name, request, { bare, service }) {
  const file = join(folder, 'request.json');
  const { write = request, every = 1, keepAlive, pipelined, connections } = request;
  const wire = { ...toWire(request), write: toWire(write), every, keepAlive, pipelined };
  writeFileSync(file, JSON.stringify(wire));
  const loading = {
    seconds: Number(options.seconds),
    connections: connections ?? Number(options.connections),
  };
  for (const server of [bare, service]) {
    await load(server, file, { ...loading, seconds: warmSeconds });
  }
  const rounds = [];
  for (let round = 0; round < Number(options.rounds); round += 1) {
    const a = await load(bare, file, loading);
    const b = await load(service, file, loading);
    rounds.push({ a, b, ratio: b.cpuMicros / a.cpuMicros });
  }
  const of = (pick) => median(rounds.map(pick));
  return [
    `| ${name}`,
    of(({ a }) => a.cpuMicros).toFixed(1),
    of(({ b }) => b.cpuMicros).toFixed(1),
    of(({ ratio }) => ratio).toFixed(2),
    of(({ b }) => b.rate).toFixed(0),
    of(({ a }) => a.p50).toFixed(3),
    of(({ b }) => b.p50).toFixed(3),
    `${of(({ b }) => b.p99).toFixed(2)} |`,
  ].join(' | ');
}

/** Time from the start of a process to its first response, and its memory when it idles. */
async function starts(file) {
  const rounds = [];
  for (let round = 0; round < Number(options.rounds); round += 1) {
    const bare = await start(join(root, 'bench/bare-server.mjs'), [file], {});
    const a = { ms: bare.readyMs, mib: await idleMemory(bare) };
    await stop(bare);
    const service = await start(join(root, 'dist/server.js'), [], settings);
    const b = { ms: service.readyMs, mib: await idleMemory(service) };
    await stop(service);
    rounds.push({ a, b });
  }
  const of = (pick) => median(rounds.map(pick));
  const row = (name, pick) =>
    `${name}: bare ${of(({ a }) => pick(a)).toFixed(1)}, Inkwell ${of(({ b }) => pick(b)).toFixed(1)}` +
    `, ratio ${of(({ a, b }) => pick(b) / pick(a)).toFixed(2)}`;
  return [row('start, ms', ({ ms }) => ms), row('idle, MiB', ({ mib }) => mib)].join('\n');
}
