/** A batch of operations that take long does not hold the event loop from its first to its last. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'graphql';
import type { RequestContext } from '../../dist/graphql/context.js';
import type { Engine } from '../../dist/graphql/engine.js';
import { runBatch } from '../../dist/graphql/http/batch.js';
import { createScheduler } from '../../dist/scheduler.js';
import { startGraphql } from '../support/graphql.ts';

const context = { facts: { requestId: 'r-1' } } as RequestContext;

/** More than an operation may take of a turn. */
const longMilliseconds = 6;

/** Runs a batch whose operations take so long each; `others`: turns that others had meanwhile. */
async function run(length: number, milliseconds: number) {
  let others = 0;
  const scheduler = createScheduler();
  const engine = {
    scheduler,
    countRefusal: () => [],
    prepare: () => ({ type: 'query', document: parse('{a}') }),
    execute() {
      const end = performance.now() + milliseconds;
      while (performance.now() < end);
      const result = { data: { others } };
      return Promise.resolve({ json: JSON.stringify(result), codes: [] });
    },
  } as unknown as Engine;
  const requests = Array.from({ length }, () => ({ query: '{a}' }));
  let going = true;
  const other = (): void => {
    others += 1;
    if (going) setImmediate(other);
  };
  setImmediate(other);
  const { json } = await runBatch(engine, requests, context);
  going = false;
  return (JSON.parse(json) as { data: { others: number } }[]).map(({ data }) => data.others);
}

test('a fault of the service in one operation has the id of its line in the log', async () => {
  const { engine, logged } = startGraphql();
  const prepare = (): never => {
    throw new Error('secret');
  };
  const { json } = await runBatch({ ...engine, prepare }, [{ query: '{a}' }], context);
  const lines = logged.map(({ event, requestId }) => [event, requestId]);
  assert.deepEqual(lines, [['graphql operation failed', 'r-1']]);
  const extensions = { code: 'INTERNAL_SERVER_ERROR', requestId: 'r-1' };
  assert.deepEqual(JSON.parse(json), [
    { errors: [{ message: 'Internal server error', extensions }] },
  ]);
});

test('others get their turn between operations that take long', async () => {
  const seen = await run(4, longMilliseconds);
  assert.equal(new Set(seen).size, 4, seen.join());
});
