/**
 * `npm run bench`: the build beside a bare `node:http` server that writes the same bytes, in turns
 * (A B A B …), so that a ratio holds although the machine's speed drifts. CPU time comes from
 * Linux's /proc; elsewhere only rates are printed.
 *
 * Options: --rounds 5, --seconds 1, --connections 16, --posts 100, --warm 4 (seconds before it is
 * measured), --only <part of a name>, --anew (no response cache).
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { idleMemory, load, median, start, stop } from './processes.mjs';
import { begin } from './report.mjs';
import { mix, scenarios, seed, toLoad } from './scenarios.mjs';
import { serviceSettings } from './service.mjs';

const { options, report } = begin({
  rounds: 5,
  seconds: 1,
  connections: 16,
  posts: 100,
  warm: 4,
  only: '',
  anew: false,
});
const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'inkwell-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const settings = {
  ...(await serviceSettings(folder)),
  ...(options.anew && { RESPONSE_CACHE_BYTES_MAX: '0' }),
};

await main();

async function main() {
  const names = Object.keys(scenarios({ token: '', ids: [] }));
  const wanted = names.filter((name) => name.toLowerCase().includes(options.only.toLowerCase()));
  const file = join(folder, 'answers.json');

  const row = report.table('CPU time of a request', [
    'scenario',
    'bare µs',
    'Inkwell µs',
    'ratio',
    'requests/s',
    'bare p50 ms',
    'p50 ms',
    'p99 ms',
  ]);
  for (const name of wanted) {
    // Servers of its own: what one scenario writes is not read in the next.
    const service = await start(join(root, 'dist/server.js'), [], settings);
    const request = scenarios(await seed(service.url, options.posts))[name];
    const { write } = request;
    const written = write === undefined ? {} : await record(service.url, write);
    const responses = { ...written, ...(await record(service.url, request)) };
    writeFileSync(file, JSON.stringify(responses));
    const bare = await start(join(root, 'bench/bare-server.mjs'), [file], {});
    row(name, ...(await compare(request, { bare, service })));
    await stop(bare);
    await stop(service);
  }
  await measureStarts(file);
  report.end();
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

async function compare(request, { bare, service }) {
  const file = join(folder, 'request.json');
  const { write = request, every = 2, keepAlive, pipelined, connections } = request;
  writeFileSync(file, toLoad(mix(request, write, every), { keepAlive, pipelined }));
  const loading = {
    seconds: options.seconds,
    connections: connections ?? options.connections,
  };
  // What V8 compiles for validation and uploads takes some seconds.
  for (const server of [bare, service]) {
    await load(server, file, { ...loading, seconds: options.warm });
  }
  const rounds = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const a = await load(bare, file, loading);
    const b = await load(service, file, loading);
    rounds.push({ a, b, ratio: b.cpuMicros / a.cpuMicros });
  }
  const of = (pick) => median(rounds.map(pick));
  return [
    of(({ a }) => a.cpuMicros),
    of(({ b }) => b.cpuMicros),
    of(({ ratio }) => ratio),
    of(({ b }) => b.rate),
    of(({ a }) => a.p50),
    of(({ b }) => b.p50),
    of(({ b }) => b.p99),
  ];
}

/** Time from the start of a process to its first response, and its memory when it idles. */
async function measureStarts(file) {
  const rounds = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const bare = await start(join(root, 'bench/bare-server.mjs'), [file], {});
    const a = { ms: bare.readyMs, mib: await idleMemory(bare) };
    await stop(bare);
    const service = await start(join(root, 'dist/server.js'), [], settings);
    const b = { ms: service.readyMs, mib: await idleMemory(service) };
    await stop(service);
    rounds.push({ a, b });
  }
  const of = (pick) => median(rounds.map(pick));
  const row = report.table('Start and idle memory', ['figure', 'bare', 'Inkwell', 'ratio']);
  for (const [name, pick] of Object.entries({
    'first response, ms': ({ ms }) => ms,
    'idle, MiB': ({ mib }) => mib,
  })) {
    const [a, b] = [of((one) => pick(one.a)), of((one) => pick(one.b))];
    row(
      name,
      a,
      b,
      of((one) => pick(one.b) / pick(one.a)),
    );
  }
}
