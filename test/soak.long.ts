/**
 * Every attack on memory at once, on small heaps with the default limits: the process stays
 * below the number that its first line names, and serves others meanwhile and afterwards.
 *
 *     SOAK_SECONDS=120 SOAK_HEAP=512 node --test dist-test/soak.long.js
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { attacks, type Target } from './support/attacks.js';
import { runProgram } from './support/program.js';

const seconds = Number(process.env['SOAK_SECONDS'] ?? 120);
const heaps = (process.env['SOAK_HEAP'] ?? '256,512').split(',');

/** Resident memory at its highest, in MiB, as the system has it. */
function residentMaxMiB(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

async function fill(url: string): Promise<readonly string[]> {
  const send = (path: string, body: string | FormData): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      body,
      ...(typeof body === 'string' && { headers: { 'Content-Type': 'application/json' } }),
    });
  const form = new FormData();
  form.append('f', new Blob([Buffer.alloc(8 * 1024 * 1024)]), 'large.bin');
  assert.equal((await send('/api/multiparts/list', form)).status, 200);
  const locations: string[] = [];
  for (let count = 0; count < 12; count += 1) {
    const body = JSON.stringify({ title: 't', content: 'x'.repeat(900_000) });
    const response = await send('/posts', body);
    assert.equal(response.status, 201);
    locations.push(response.headers.get('location') ?? '');
  }
  return locations.map((location) => location.slice('/posts/'.length));
}

for (const heap of heaps) {
  test(`all attacks at once for ${seconds} s take no more memory than was said, with a heap of ${heap} MiB`, async (t) => {
    if (process.platform !== 'linux') return t.skip('only Linux tells what a process took at most');
    const program = await runProgram(t, { flags: [`--max-old-space-size=${heap}`] });
    const { line, port } = await program.listening();
    const { memoryMaxMiB } = JSON.parse(line) as { readonly memoryMaxMiB: number };
    const url = `http://127.0.0.1:${port}`;
    const target: Target = { port, posts: await fill(url) };
    const stop = new AbortController();
    const running = Object.values(attacks).map((attack) => attack(target, stop.signal));
    let served = 0;
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const response = await fetch(`${url}/hello`).catch((error: unknown) => error);
      // The attackers take the time of this process too: some of its requests may come too late.
      if (response instanceof Response && response.status === 200) served += 1;
      assert.equal(program.child.exitCode, null, program.output().slice(-2_000));
      await delay(50);
    }
    stop.abort();
    await Promise.all(running);
    const taken = residentMaxMiB(program.child.pid);
    t.diagnostic(`${taken.toFixed(0)} of ${memoryMaxMiB} MiB; /hello was served ${served} times`);
    assert.equal(program.child.exitCode, null, program.output().slice(-2_000));
    assert.ok(served > 0);
    assert.ok(taken < memoryMaxMiB, `${taken} MiB were taken, ${memoryMaxMiB} named`);
    assert.equal((await fetch(`${url}/posts`)).status, 200);
  });
}
