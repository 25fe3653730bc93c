/**
 * Requests that are almost right, on every route, against the program itself. It must neither end,
 * nor fail, nor hang; at length it must not grow either, nor keep others waiting.
 *
 *     FUZZ_REQUESTS=100000 FUZZ_SEED=7 TEST_LONG=1 node --test dist-test/fuzz.test.js
 */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  assertHarmless,
  assertIntact,
  createFuzzer,
  type Fuzzer,
  seed,
  smallStore as env,
} from './support/fuzzer.ts';
import { logIn } from './support/login.ts';
import { isLong, rounds } from './support/long.ts';
import { assertServed, describeGap, type Gap, startProber } from './support/prober.ts';
import { type Measure, type Program, runProgram } from './support/program.ts';

const requestsMax = rounds('FUZZ_REQUESTS', { short: 500, long: 10_000 });

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
/** In bytes. */
const growthMax = 80 * 1024 * 1024;

test(`${requestsMax} requests that are almost right do no harm`, async (t) => {
  t.diagnostic(`FUZZ_SEED=${seed}`);
  // What Node 20 has: newer versions let the young generation grow by a hundred MiB.
  const flags = ['--max-semi-space-size=16'];
  const program = await runProgram(t, { env, flags, measured: isLong });
  const { port, url } = await program.listening();
  const fuzzer = await createFuzzer(port);

  await fuzzer.sendSeeds();
  if (isLong) await runMeasured(t, program, fuzzer);
  else await fuzzer.run(requestsMax);
  assertHarmless(program);
  await assertIntact(url);
  assert.ok((fuzzer.count('2') + fuzzer.count('1')) * 5 > fuzzer.requests(), 'too few succeed');
});

async function runMeasured(t: TestContext, program: Program, fuzzer: Fuzzer): Promise<void> {
  const url = `http://127.0.0.1:${(await program.listening()).port}`;
  const start = await program.measure();
  await logInOften(url);
  await fuzzer.run(warmUpRequests);
  const before = await measureSettled(program, start);
  const prober = startProber(t, { url, pid: program.child.pid });
  await fuzzer.run(warmUpRequests + requestsMax);
  const gap = prober.stop();
  const after = await measureSettled(program, before);

  report(t, { fuzzer, gap, start, before, after });
  assertServed(gap);
  const measures = JSON.stringify({ before, after });
  assert.ok(after.inUse - before.inUse < growthMax, measures);
  assert.ok(after.resident - before.resident < growthMax, measures);
  assert.equal(after.descriptors, before.descriptors);
}

async function logInOften(url: string): Promise<void> {
  // As many at once as the service checks at once.
  for (let count = 0; count < warmUpLogins; count += 2) {
    await Promise.all([logIn({ url }), logIn({ url })]);
  }
}

/** Asks until the connections of the test are gone, as each response takes its time. */
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
