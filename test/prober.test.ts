/** The prober of the hostile tests finds what it is for, and blames no server for the machine. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Gap } from './support/prober-process.js';
import { assertQuick, startProber } from './support/prober.js';

/** What is found of a server that answers so, until `calls` have come. */
async function probe(t: TestContext, calls: number, answer: RequestListener): Promise<Gap> {
  let left = calls;
  let wake = (): void => undefined;
  const enough = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const server = createServer((request, response) => {
    answer(request, response);
    left -= 1;
    if (left === 0) wake();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const prober = await startProber(t, { url: `http://127.0.0.1:${port}` });
  await enough;
  return prober.stop();
}

test('a server that answers at once is quick', async (t) => {
  const gap = await probe(t, 10, (_request, response) => response.end());
  assertQuick(gap);
  assert.ok(gap.calls >= 9, `${gap.calls} calls`);
});

test('one that holds its thread is found out', async (t) => {
  let held = false;
  const gap = await probe(t, 10, (_request, response) => {
    // Asleep, not busy: the machine takes nothing from it.
    if (!held) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    held = true;
    response.end();
  });
  assert.ok(gap.waited >= 2_000, `${gap.waited} ms`);
  assert.throws(() => assertQuick(gap), /at most/);
});

test('one that refuses, or cuts its answer, is found out', async (t) => {
  const failing: RequestListener[] = [
    (_request, response) => response.writeHead(503).end(),
    (_request, response) => void response.destroy(),
  ];
  for (const answer of failing) {
    const gap = await probe(t, 5, answer);
    assert.equal(gap.own, Infinity);
  }
});

for (const [slowRuns, runs, code] of [
  [0, 1, 0],
  [2, 3, 0],
  [3, 3, 1],
  [9, 3, 1],
]) {
  test(`a file with a gap in its first ${slowRuns} runs is run ${runs} times: ${code}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'inkwell-prober-'));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, 'file.mjs');
    await writeFile(
      file,
      `import { appendFileSync, readFileSync } from 'node:fs';
      import { assertQuickAgain } from ${JSON.stringify(new URL('support/prober.js', import.meta.url))};
      const log = ${JSON.stringify(join(folder, 'log'))};
      appendFileSync(log, '.');
      const slow = readFileSync(log, 'utf8').length <= ${slowRuns};
      await assertQuickAgain({ name: '', waited: 0, own: slow ? 501 : 1, calls: 1 });`,
    );
    const program = spawn(process.execPath, [file], { stdio: 'ignore' });
    assert.deepEqual(await once(program, 'exit'), [code, null]);
    assert.equal((await readFile(join(folder, 'log'), 'utf8')).length, runs);
  });
}
