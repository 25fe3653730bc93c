/** Sends requests that are almost right, on every route, to the program itself. */

import assert from 'node:assert/strict';
import { mutate, mutateBytes } from './fuzz-mutate.js';
import { createRandom, type Random } from './fuzz-random.js';
import { type FuzzRequest, type Known, seeds } from './fuzz-seeds.js';
import { logIn } from './login.js';
import { exchange, type WireResponse, toBytes } from './fuzz-wire.js';
import type { Program } from './program.js';

export const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 32);

const connectionsAtOnce = 32;
const requestsOfConnection = 6;

/** A store that is soon full, and that deletions make room in: both sides of its bound. */
export const smallStore = {
  MEMORY_STORE_BYTES_MAX: String(1024 * 1024),
  STORED_BYTES_MAX: '65536',
  // What waits for the rest of a request ends soon.
  IDLE_TIMEOUT_SECONDS: '2',
  KEEP_ALIVE_SECONDS: '1',
};

/** Ids and a token that requests can be made with. */
async function know(url: string, random: Random): Promise<Known> {
  const idsOf = async (path: string): Promise<string[]> => {
    const list = (await (await fetch(url + path)).json()) as { readonly id: string }[];
    return list.map(({ id }) => id);
  };
  const posts = await idsOf('/posts');
  const comments = await idsOf(`/posts/${posts[0] ?? ''}/comments`);
  const ids = { posts, comments, todos: await idsOf('/api/todos'), articles: ['1', '2'] };
  return { random, ids, token: await logIn({ url }) };
}

/** The requests of one connection. */
interface Burst {
  readonly bytes: Buffer;
  readonly upgrades: boolean;
}

export interface Fuzzer {
  /** Each good request once, and as it is: it must succeed. */
  sendSeeds(): Promise<void>;
  /** Until so many were sent. */
  run(end: number): Promise<void>;
  requests(): number;
  /** Answers whose status begins so. */
  count(start: string): number;
}

export async function createFuzzer(port: number): Promise<Fuzzer> {
  const known = await know(`http://127.0.0.1:${port}`, createRandom(seed));
  const { random } = known;
  const posts = [...known.ids.posts];
  const pool = { ...known, ids: { ...known.ids, posts } };
  const weighted = seeds.flatMap((each) => Array.from({ length: each.weight }, () => each));
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
  const send = async ({ bytes, upgrades }: Burst): Promise<WireResponse> => {
    const described = JSON.stringify(bytes.subarray(0, 4_000).toString('latin1'));
    const response = await exchange(port, bytes, upgrades).catch((error: unknown) => {
      throw new Error(`${String(error)} FUZZ_SEED=${seed} ${described}`);
    });
    const failed = response.statuses.includes(500) || /Internal server error/.test(response.text);
    assert.ok(!failed, `FUZZ_SEED=${seed} ${described} → ${response.text}`);
    for (const status of response.statuses.map(String)) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    for (const [, id = ''] of response.text.matchAll(/^location: \/posts\/(\S+)/gim)) {
      if (posts.length < 200) posts.push(id);
    }
    return response;
  };
  const sendUntil = async (end: number): Promise<void> => {
    while (state.requests < end) await send(makeMany());
  };

  return {
    async sendSeeds() {
      for (const { status, make } of seeds) {
        const request = make(pool);
        const upgrades = request.messages !== undefined;
        const response = await send({ bytes: toBytes(request, random), upgrades });
        const { method, target } = request;
        assert.equal(response.statuses[0], status, `${method} ${target}: ${response.text}`);
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

/** It runs, and nothing that it logged is a failure of its own. */
export function assertHarmless(program: Program): void {
  assert.equal(program.child.exitCode, null);
  assert.equal(program.errors(), '');
  const lines = program.output().trimEnd().split('\n');
  const failures = lines.filter(
    (line) => (JSON.parse(line) as { level: string }).level === 'error',
  );
  assert.deepEqual(failures.slice(0, 3), []);
}

/** What is stored can still be read, all of it. */
export async function assertWhole(url: string): Promise<void> {
  for (const path of ['/posts', '/api/todos', '/api/articles']) {
    assert.ok(Array.isArray(await (await fetch(url + path)).json()));
  }
  await (await fetch(`${url}/api/multiparts`)).formData();
}
