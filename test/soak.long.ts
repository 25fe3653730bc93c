/**
 * Every attack at once, on small heaps with the default limits: the process stays below the memory
 * that its first line names, and serves others meanwhile and afterwards.
 *
 *     SOAK_SECONDS=120 SOAK_HEAP=512 SOAK_STORE=postgres node --test dist-test/soak.long.js
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Attacked } from './support/attacker.ts';
import { many } from './support/attacks.ts';
import { type Share, startHonest } from './support/honest.ts';
import { assertServed, describeGap, startProber } from './support/prober.ts';
import { type Program, runProgram } from './support/program.ts';
import { supportUrl } from './support/small-heap.ts';
import { inMemory, inSqliteFile, onPostgres } from './support/stores.ts';
import { documents, longTitle } from './support/turn-attacks.ts';

const seconds = Number(process.env['SOAK_SECONDS'] ?? 120);
const heaps = (process.env['SOAK_HEAP'] ?? '256,512').split(',');
const places = { memory: inMemory, sqlite: inSqliteFile, postgres: onPostgres };
const place = places[(process.env['SOAK_STORE'] ?? 'memory') as keyof typeof places];

/**
 * What honest clients may be refused while all others attack: a part of what they ask for, and a
 * few, since they ask for forty records where other work takes the machine, and for 300 elsewhere.
 */
const refusedMax: Readonly<Record<string, { readonly share: number; readonly few: number }>> = {
  uploads: { share: 0.05, few: 1 },
  // Only five or six are sent in two minutes.
  'slow posts': { share: 0.05, few: 2 },
  reads: { share: 0.01, few: 3 },
  queries: { share: 0.05, few: 1 },
  comments: { share: 0.01, few: 2 },
  events: { share: 0, few: 0 },
  // There are sixteen attackers for each honest login, and two are checked at a time.
  logins: { share: 0.1, few: 0 },
};

function assertHonestServed(shares: ReadonlyMap<string, Share>): void {
  for (const [kind, { asked, refused }] of shares) {
    const { share, few } = refusedMax[kind] ?? assert.fail(kind);
    assert.ok(asked > 0, `no ${kind}`);
    assert.ok(refused <= few + share * asked, `${kind}: ${refused} of ${asked} refused`);
  }
}

/** Resident memory at its highest, in MiB, as the system has it. */
function residentMaxMiB(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

async function send(url: string, body: string | FormData): Promise<Response> {
  const headers = { ...(typeof body === 'string' && { 'Content-Type': 'application/json' }) };
  const response = await fetch(url, { method: 'POST', body, headers });
  assert.ok(response.ok, `${url}: ${response.status} ${await response.clone().text()}`);
  return response;
}

/** Its id. */
async function sendPost(url: string, title: string, content: string): Promise<string> {
  const response = await send(`${url}/posts`, JSON.stringify({ title, content }));
  return (response.headers.get('location') ?? '').slice('/posts/'.length);
}

async function fillMemory(url: string): Promise<readonly string[]> {
  const form = new FormData();
  form.append('f', new Blob([Buffer.alloc(8 * 1024 * 1024)]), 'large.bin');
  await send(`${url}/api/multiparts/list`, form);
  const posts: string[] = [];
  while (posts.length < 12) posts.push(await sendPost(url, 't', 'x'.repeat(900_000)));
  return posts;
}

/** Large articles, long titles, and twenty thousand posts. */
async function fillTurns(url: string): Promise<readonly string[]> {
  for (const make of Object.values(documents)) await send(`${url}/api/articles`, make());
  const fields = many(50, (at) => `a${at}: createPost(createPostInput: $i)`).join(' ');
  const query = `mutation ($i: CreatePostInput!) { ${fields} }`;
  const batch = many(20, () => ({ query, variables: { i: { title: 't', content: 'c' } } }));
  for (let thousand = 0; thousand < 20; thousand += 1) {
    await (await send(`${url}/graphql`, JSON.stringify(batch))).arrayBuffer();
  }
  // Posts come newest first: these are on the first page.
  for (let count = 0; count < 8; count += 1) await sendPost(url, longTitle, 'c');
  return [await sendPost(url, 't', 'c')];
}

/** From now on, on a thread of its own. Resolves once they are gone. */
function attack(t: TestContext, attacked: Attacked): () => Promise<unknown> {
  const worker = new Worker(new URL(supportUrl('attacker')), { workerData: attacked });
  let fault: unknown;
  worker.on('error', (error) => (fault = error));
  const end = async (): Promise<void> => {
    await worker.terminate();
    assert.equal(fault, undefined);
  };
  t.after(() => worker.terminate());
  return end;
}

function assertWithinMemory(t: TestContext, program: Program, line: string): void {
  const { memoryMaxMiB } = JSON.parse(line) as { readonly memoryMaxMiB: number };
  assert.equal(program.child.exitCode, null, program.output().slice(-2_000));
  const taken = residentMaxMiB(program.child.pid);
  t.diagnostic(`${taken.toFixed(0)} of ${memoryMaxMiB} MiB`);
  assert.ok(taken < memoryMaxMiB, `${taken} MiB were taken, ${memoryMaxMiB} named`);
}

for (const heap of heaps) {
  const flags = [`--max-old-space-size=${heap}`];

  test(`all attacks on memory for ${seconds} s take no more than was said, with a heap of ${heap} MiB`, async (t) => {
    if (process.platform !== 'linux') return t.skip('only Linux tells what a process took at most');
    const env = { STORE_URL: await place.newUrl(t) };
    const program = await runProgram(t, { flags, env });
    const { line, port, url } = await program.listening();
    const end = attack(t, { kind: 'memory', port, posts: await fillMemory(url) });
    let served = 0;
    const until = performance.now() + seconds * 1000;
    while (performance.now() < until) {
      const response = await fetch(`${url}/hello`).catch((error: unknown) => error);
      // The attackers take every connection that the process allows: some calls may get none.
      if (response instanceof Response && response.status === 200) served += 1;
      assert.equal(program.child.exitCode, null, program.output().slice(-2_000));
      await delay(50);
    }
    await end();
    t.diagnostic(`/hello was served ${served} times`);
    assertWithinMemory(t, program, line);
    assert.ok(served > 0);
    assert.equal((await fetch(`${url}/posts`)).status, 200);
  });

  test(`all attacks on the turns of others for ${seconds} s, with a heap of ${heap} MiB: honest clients are served`, async (t) => {
    if (process.platform !== 'linux') return t.skip('only Linux tells what a process took at most');
    // Clients have addresses of their own.
    const env = { STORE_URL: await place.newUrl(t), TRUSTED_PROXIES: '127.0.0.1' };
    const program = await runProgram(t, { flags, env });
    const { line, port, url } = await program.listening();
    const posts = await fillTurns(url);
    const { pid } = program.child;
    const honest = await startHonest({ port, pid }, await sendPost(url, 'honest', 'c'));
    const prober = startProber(t, { url, pid });
    const end = attack(t, { kind: 'turns', port, posts });
    await delay(seconds * 1000);
    const gap = prober.stop();
    await end();
    const shares = await honest.stop();
    t.diagnostic(`/hello ${describeGap(gap)}, ${gap.calls} calls`);
    t.diagnostic(JSON.stringify(Object.fromEntries(shares)));
    assertWithinMemory(t, program, line);
    // All attacks take the two processors of a small machine too: 4 to 10 s on a quiet one.
    assertServed(gap, 30_000);
    assertHonestServed(shares);
    assert.equal((await fetch(`${url}/posts?limit=1`)).status, 200);
  });
}
