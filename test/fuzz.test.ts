/**
 * Requests that are almost right, on every route, against the program itself. It must neither end,
 * nor fail, nor hang.
 *
 *     FUZZ_SEED=7 node --test dist-test/fuzz.test.js
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertHarmless, assertWhole, createFuzzer, seed, smallStore } from './support/fuzzer.js';
import { runProgram } from './support/program.js';

const requestsMax = 500;

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
