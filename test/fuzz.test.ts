/**
 * Requests that are almost right, on every route, against the program itself. It must neither end,
 * nor fail, nor hang.
 *
 *     FUZZ_SEED=7 node --test dist-test/fuzz.test.js
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRoutes } from '../dist/handlers/routes.js';
import { seeds } from './support/fuzz-routes.js';
import { assertHarmless, assertWhole, createFuzzer, seed, smallStore } from './support/fuzzer.js';
import { runProgram } from './support/program.js';

const requestsMax = 500;

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
  const program = await runProgram(t, { env: smallStore });
  const { port } = await program.listening();
  const fuzzer = await createFuzzer(port);
  await fuzzer.sendSeeds();
  await fuzzer.run(requestsMax);
  assertHarmless(program);
  await assertWhole(`http://127.0.0.1:${port}`);
  assert.ok((fuzzer.count('2') + fuzzer.count('1')) * 5 > fuzzer.requests(), 'too few succeed');
});
