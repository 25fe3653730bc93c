/**
 * Thousands of requests that are almost right, on every route, against the program itself. It must
 * neither end, nor fail, nor hang, nor grow, nor keep others waiting.
 *
 *     FUZZ_REQUESTS=100000 FUZZ_SEED=7 node --test dist-test/fuzz.test.js
 */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createRoutes } from '../dist/handlers/routes.js';
import { mutate, mutateBytes } from './support/fuzz-mutate.js';
import { createRandom, type Random } from './support/fuzz-random.js';
import type { FuzzRequest, Known } from './support/fuzz-request.js';
import { seeds } from './support/fuzz-routes.js';
import { exchange, type Reply, toBytes } from './support/fuzz-wire.js';
import type { Gap } from './support/prober-process.js';
import { assertQuickAgain, describeGap, startProber } from './support/prober.js';
import { type Measure, type Program, runProgram } from './support/program.js';

const requestsMax = Number(process.env['FUZZ_REQUESTS'] ?? 3_000);
const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 32);
// Also of another run of this file that the prober asks for.
process.env['FUZZ_SEED'] = String(seed);

const connectionsAtOnce = 32;
/**
 * Until the caches of the service are filled, and what V8 and the allocator keep has the size that
 * the load asks for. What grows without a bound goes on growing behind it.
 */
const warmUpRequests = Math.max(1_000, requestsMax / 10);
/**
 * So many logins that each thread of the pool has done some: glibc keeps for each of the four what
 * one scrypt took, 16 MiB.
 */
const warmUpLogins = 40;
const requestsOfConnection = 6;
/** In bytes. */
const growthMax = 80 * 1024 * 1024;

/** A store that is soon full, and that deletions make room in: both sides of its bound. */
const env = {
  MEMORY_STORE_BYTES_MAX: String(1024 * 1024),
  STORED_FILES_MAX: '50',
  LOG_LINES_PER_SECOND_MAX: '1000',
  // What waits for the rest of a request ends soon.
  IDLE_TIMEOUT_SECONDS: '2',
  HEADERS_TIMEOUT_SECONDS: '2',
  KEEP_ALIVE_SECONDS: '1',
  WS_INIT_TIMEOUT_SECONDS: '1',
};

const anyHandlers: unknown = new Proxy(() => anyHandlers, {
  get: (_target, key) => (key === Symbol.iterator ? undefined : anyHandlers),
});

test('the fuzzer starts from a good request of every route', () => {
  const routes = createRoutes(anyHandlers as Parameters<typeof createRoutes>[0]);
  const seeded = new Set(seeds.map(({ route }) => route));
  assert.deepEqual(
    routes.map(({ method, path }) => `${method} ${path}`).filter((route) => !seeded.has(route)),
    [],
  );
});

test(`${requestsMax} requests that are almost right do no harm`, async (t) => {
  t.diagnostic(`FUZZ_SEED=${seed}`);
  // What Node 20 has: newer versions let the young generation grow by a hundred MiB.
  const flags = ['--max-semi-space-size=16'];
  const program = await runProgram(t, { env, flags, measured: true });
  const { port } = await program.listening();
  const url = `http://127.0.0.1:${port}`;
  const fuzzer = createFuzzer(port, await know(url, createRandom(seed)));

  await fuzzer.sendSeeds();
  const start = await program.measure();
  await logInOften(url);
  await fuzzer.run(warmUpRequests);
  const before = await measureSettled(program, start);
  const prober = await startProber(t, { url, pid: program.child.pid });
  await fuzzer.run(warmUpRequests + requestsMax);
  const gap = await prober.stop();
  const after = await measureSettled(program, before);

  report(t, { fuzzer, gap, start, before, after });
  assertHarmless(program);
  await assertWhole(url);
  await assertQuickAgain(gap);
  const measures = JSON.stringify({ before, after });
  assert.ok(after.inUse - before.inUse < growthMax, measures);
  assert.ok(after.resident - before.resident < growthMax, measures);
  assert.equal(after.descriptors, before.descriptors);
  assert.ok((fuzzer.count('2') + fuzzer.count('1')) * 5 > fuzzer.requests(), 'too few succeed');
});

async function logIn(url: string): Promise<string> {
  const login = await fetch(`${url}/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"username":"user","password":"password"}',
  });
  assert.equal(login.status, 200);
  const { access_token: token } = (await login.json()) as { readonly access_token: string };
  return token;
}

async function logInOften(url: string): Promise<void> {
  // As many at once as the service checks at once.
  for (let count = 0; count < warmUpLogins; count += 2) {
    await Promise.all([logIn(url), logIn(url)]);
  }
}

/** Ids and a token that requests can be made with. */
async function know(url: string, random: Random): Promise<Known> {
  const ids = async (path: string): Promise<string[]> => {
    const list = (await (await fetch(url + path)).json()) as { readonly id: string }[];
    return list.map(({ id }) => id);
  };
  const posts = await ids('/posts');
  const comments = await ids(`/posts/${posts[0] ?? ''}/comments`);
  return { random, posts, comments, todos: await ids('/api/todos'), token: await logIn(url) };
}

/** The requests of one connection. */
interface Burst {
  readonly bytes: Buffer;
  readonly upgrades: boolean;
}

interface Fuzzer {
  /** Each good request once, and as it is: it must succeed. */
  sendSeeds(): Promise<void>;
  /** Until so many were sent. */
  run(end: number): Promise<void>;
  requests(): number;
  /** Answers whose status begins so. */
  count(start: string): number;
}

function createFuzzer(port: number, known: Known): Fuzzer {
  const { random } = known;
  const posts = [...known.posts];
  const pool = { ...known, posts };
  const weighted = seeds.flatMap((each) => Array.from({ length: each.weight ?? 1 }, () => each));
  const statuses = new Map<string, number>();
  const state = { requests: 0 };

  const makeOne = (): FuzzRequest => {
    let request = random.pick(weighted).make(pool);
    if (request.method === 'DELETE' && posts.length > 1) posts.pop();
    if (random.oneIn(3)) return request;
    for (let count = random.below(3); count >= 0; count -= 1) request = mutate(request, random);
    return request;
  };
  const makeMany = (): Burst => {
    const pieces: Buffer[] = [];
    let upgrades = false;
    for (let count = random.below(requestsOfConnection); count >= 0; count -= 1) {
      const request = makeOne();
      state.requests += 1;
      pieces.push(toBytes(request, random));
      upgrades = request.messages !== undefined;
      if (upgrades) break; // nothing is HTTP after it
    }
    const bytes = Buffer.concat(pieces);
    return { bytes: random.oneIn(8) ? mutateBytes(bytes, random) : bytes, upgrades };
  };
  const send = async ({ bytes, upgrades }: Burst): Promise<Reply> => {
    const described = JSON.stringify(bytes.subarray(0, 4_000).toString('latin1'));
    const reply = await exchange(port, bytes, upgrades).catch((error: unknown) => {
      throw new Error(`${String(error)} FUZZ_SEED=${seed} ${described}`);
    });
    const failed = reply.statuses.includes(500) || /Internal server error/.test(reply.text);
    assert.ok(!failed, `FUZZ_SEED=${seed} ${described} → ${reply.text}`);
    for (const status of reply.statuses.map(String)) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    for (const [, id = ''] of reply.text.matchAll(/^location: \/posts\/(\S+)/gim)) {
      if (posts.length < 200) posts.push(id);
    }
    return reply;
  };
  const sendUntil = async (end: number): Promise<void> => {
    while (state.requests < end) await send(makeMany());
  };

  return {
    async sendSeeds() {
      for (const { route, status, make } of seeds) {
        const request = make(pool);
        const upgrades = request.messages !== undefined;
        const reply = await send({ bytes: toBytes(request, random), upgrades });
        assert.equal(reply.statuses[0], status, `${route}: ${reply.text}`);
      }
    },
    async run(end) {
      const lanes = Array.from({ length: connectionsAtOnce }, () => sendUntil(end));
      await Promise.all(lanes);
    },
    requests: () => state.requests,
    count(start) {
      const counted = [...statuses].filter(([status]) => status.startsWith(start));
      return counted.reduce((sum, [, count]) => sum + count, 0);
    },
  };
}

/** Asks until the connections of the test are gone, as each answer takes its time. */
async function measureSettled(program: Program, before: Measure): Promise<Measure> {
  const end = performance.now() + 10_000;
  let heldLoop = 0;
  for (;;) {
    const measure = await program.measure();
    heldLoop = Math.max(heldLoop, measure.heldLoop);
    if (measure.descriptors === before.descriptors || performance.now() > end) {
      return { ...measure, heldLoop };
    }
  }
}

/** It runs, and nothing that it logged is a failure of its own. */
function assertHarmless(program: Program): void {
  assert.equal(program.child.exitCode, null);
  assert.equal(program.errors(), '');
  const lines = program.output().trimEnd().split('\n');
  const failures = lines.filter(
    (line) => (JSON.parse(line) as { level: string }).level === 'error',
  );
  assert.deepEqual(failures.slice(0, 3), []);
}

/** What is stored can still be read, all of it. */
async function assertWhole(url: string): Promise<void> {
  for (const path of ['/posts', '/api/todos', '/api/articles']) {
    assert.ok(Array.isArray(await (await fetch(url + path)).json()));
  }
  await (await fetch(`${url}/api/multiparts`)).formData();
}

interface Outcome {
  readonly fuzzer: Fuzzer;
  readonly gap: Gap;
  readonly start: Measure;
  readonly before: Measure;
  readonly after: Measure;
}

function report(t: TestContext, { fuzzer, gap, start, before, after }: Outcome): void {
  const classes = ['1', '2', '3', '4', '5'].map((first) => `${first}xx ${fuzzer.count(first)}`);
  const [atStart, warm, atEnd] = [start, before, after].map(
    ({ resident, inUse }) => `${resident >> 20} MiB (${inUse >> 20} in use)`,
  );
  t.diagnostic(`${fuzzer.requests()} requests, answers: ${classes.join(', ')}`);
  t.diagnostic(
    `memory ${atStart}, warm ${warm}, at the end ${atEnd}, descriptors ${before.descriptors} → ${after.descriptors}, ` +
      `/hello ${describeGap(gap)}, event loop held ${after.heldLoop.toFixed()} ms`,
  );
}
