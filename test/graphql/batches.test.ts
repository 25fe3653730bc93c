/** A batch of operations that take long does not hold the event loop from its first to its last. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'graphql';
import type { Engine } from '../../dist/graphql/engine.js';
import { createOperations } from '../../dist/graphql/http/operations.js';
import { createScheduler } from '../../dist/graphql/scheduler.js';
import { isPromise } from '../../dist/maybe-promise.js';

/** More than an operation may take of a turn. */
const longMilliseconds = 6;

/** Runs a batch whose operations take so long each; `others`: turns that others had meanwhile. */
async function runBatch(length: number, milliseconds: number) {
  let others = 0;
  const scheduler = createScheduler();
  const engine = {
    scheduler,
    prepare: () => ({ kind: 'ready', operation: 'query', document: parse('{a}') }),
    respond() {
      const end = performance.now() + milliseconds;
      while (performance.now() < end);
      const result = { data: { others } };
      return { result, json: JSON.stringify(result) };
    },
  } as unknown as Engine;
  const operations = createOperations(engine);
  const requests = Array.from({ length }, () => ({ query: '{a}' }));
  const call = { scope: {}, readsOnly: false, showCost: false } as never;
  let going = true;
  const other = (): void => {
    others += 1;
    if (going) setImmediate(other);
  };
  setImmediate(other);
  const answer = operations.runBatch(requests, call);
  const atOnce = !isPromise(answer);
  const { json } = await answer;
  going = false;
  const seen = (JSON.parse(json.toString()) as { data: { others: number } }[]).map(
    ({ data }) => data.others,
  );
  return { atOnce, seen };
}

test('others get their turn between operations that take long', async () => {
  const { atOnce, seen } = await runBatch(4, longMilliseconds);
  assert.equal(atOnce, false);
  assert.equal(new Set(seen).size, 4, seen.join());
});

test('a batch of one is answered at once', async () => {
  assert.equal((await runBatch(1, 0)).atOnce, true);
});
