import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { jsonTextResponse } from '../../dist/http/message.js';
import { createRecordTexts, createResponseCache } from '../../dist/records/response-cache.js';
import { createMemoryStore } from '../../dist/store/memory.js';
import { initialData } from '../../dist/store/seed.js';
import type { Store } from '../../dist/store/store.js';
import { driverOptions } from '../support/driver-options.ts';

/** Everybody reads everything. */
const reader = undefined;

function open(bytesMax = 10_000, store = newStore()) {
  const responses = createResponseCache({ store, run: 'run', bytesMax });
  /** What is responded to what reads todos: `body`, where that was made now, after `meanwhile`. */
  const ask = async (key: string, body: string, meanwhile?: () => unknown): Promise<unknown> => {
    const made = responses.respond(
      key,
      async (records) => {
        await records.todos.all.read();
        await meanwhile?.();
        return jsonTextResponse(200, body);
      },
      { reader },
    );
    return (await made).body;
  };
  return { store, ask, responses };
}

function newStore(): Store {
  return createMemoryStore(driverOptions({ initial: initialData([], true) }));
}

const todo = { title: 'a', completed: false };

it('a write that comes while a response is made keeps it from being cached', async () => {
  const { store, ask } = open();
  assert.equal(await ask('a', 'old', () => store.todos.create(todo)), 'old');
  assert.equal(await ask('a', 'new'), 'new');
});

it('keys and responses stay within their bytes, and the oldest give way', async () => {
  // Each takes 688 bytes, with 100 of its key and 80 of its text.
  const { store, ask } = open(68_800);
  const keyOf = (number: number): string => `${number}`.padStart(100);
  for (let number = 0; number < 150; number += 1) await ask(keyOf(number), 'x'.repeat(40));
  let seen = 0;
  while ((await ask(keyOf(149 - seen), 'again')) !== 'again') seen += 1;
  assert.equal(seen, 100);
  // What is out of date counts, and gives way like the rest.
  await store.todos.create(todo);
  await ask('new', 'y');
  assert.equal(await ask('new', 'again'), 'y');
  await ask('too large', 'x'.repeat(68_801));
  assert.equal(await ask('too large', 'again'), 'again');
});

it('of equal requests that a store told the same state, the first makes the response', async () => {
  const { ask } = open(10_000, { ...newStore(), askState: () => Promise.resolve('same') });
  const bodies = ['one', 'two', 'three'].map((body) => ask('a', body, nextIteration));
  assert.deepEqual(await Promise.all(bodies), ['one', 'one', 'one']);
  const failing = (): never => {
    throw new Error('away');
  };
  const [failed, ...made] = await Promise.allSettled([
    ask('b', 'one', failing),
    ask('b', 'two', nextIteration),
    ask('c', 'three', nextIteration),
  ]);
  assert.equal(failed.status, 'rejected');
  const found = made.map((each) => each.status === 'fulfilled' && each.value);
  assert.deepEqual(found, ['two', 'three']);
});

it('texts of records are forgotten beyond their bytes, and count anew from the first one', () => {
  const toText = createRecordTexts(1_000);
  const records = [1, 2, 3, 4, 5].map((id) => ({ id }));
  let made = 0;
  // Each counts as 500 bytes: the third and the fifth find no room.
  const ask = (record?: object) => toText(record, () => `${(made += 1)}`.padEnd(200));
  for (const record of [...records, records[4]]) ask(record);
  assert.equal(made, 5);
  ask(records[2]);
  assert.equal(made, 6);
});
