import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createIdSource } from '../../dist/domain/scalars.js';
import { jsonTextResponse } from '../../dist/http/message.js';
import {
  createRecordTexts,
  createResponseCache,
  toJsonBody,
} from '../../dist/records/response-cache.js';
import { createMemoryStore } from '../../dist/store/memory.js';
import { initialData } from '../../dist/store/seed.js';
import type { Store } from '../../dist/store/store.js';

function open(bytesMax = 10_000, store = newStore()) {
  const responses = createResponseCache({ store, run: 'run', bytesMax });
  /** Begins a response that reads todos; the result makes and caches it. */
  const begin = (key: string): ((body: string) => unknown) => {
    const records = responses.read();
    void records.todos;
    return (body) => responses.store(key, records, jsonTextResponse(200, body)).body;
  };
  /** What is responded: `body`, where that was made now. */
  const ask = (key: string, body: string): unknown => responses.find(key)?.body ?? begin(key)(body);
  return { store, ask, begin };
}

function newStore(): Store {
  return createMemoryStore({
    createId: createIdSource(() => new Date()),
    now: () => '2026-01-01T00:00:00',
    initial: initialData([], true),
    bytesMax: 1_000_000,
  });
}

const todo = { title: 'a', completed: false };

it('a response is made once, until what it was made from is written to', async () => {
  const { store, ask } = open();
  assert.deepEqual(
    [ask('a', 'one'), ask('a', 'again'), ask('b', 'other')],
    ['one', 'one', 'other'],
  );
  await store.posts.create({ title: 'a', content: 'b', authorId: null });
  assert.equal(ask('a', 'again'), 'one');
  await store.todos.create(todo);
  assert.deepEqual([ask('a', 'two'), ask('a', 'again')], ['two', 'two']);
});

it('a write that comes while a response is made keeps it from being cached', async () => {
  const { store, ask, begin } = open();
  const finish = begin('a');
  await store.todos.create(todo);
  assert.equal(finish('old'), 'old');
  assert.equal(ask('a', 'new'), 'new');
});

it('keys and responses stay within their bytes, and the oldest give way', async () => {
  const { store, ask } = open(6_000);
  for (let number = 0; number < 50; number += 1) ask(`k${number}`, 'x'.repeat(40));
  const found = Array.from({ length: 50 }, (_, number) => ask(`k${49 - number}`, 'again'));
  const seen = found.findIndex((body) => body === 'again');
  assert.equal(seen, Math.floor(6_000 / 583));
  // What is out of date counts, and gives way like the rest.
  await store.todos.create(todo);
  ask('new', 'y');
  assert.equal(ask('new', 'again'), 'y');
  ask('too large', 'x'.repeat(6_001));
  assert.equal(ask('too large', 'again'), 'again');
});

it('nothing is cached without bytes for it, or where the store has no versions', () => {
  const other = { ...newStore(), versions: () => undefined };
  for (const { ask } of [open(0), open(10_000, other)]) {
    assert.deepEqual([ask('a', 'one'), ask('a', 'two')], ['one', 'two']);
  }
});

it('a short response is text, a long one bytes', () => {
  const long = `"${'é'.repeat(3_000)}"`;
  assert.deepEqual([toJsonBody('{}'), toJsonBody(long)], ['{}', Buffer.from(long)]);
});

it('the text of a record is made once, within the bytes', () => {
  const made: object[] = [];
  const texts = createRecordTexts(1_000);
  const toJson = (record: object): string =>
    texts(record, (given) => {
      made.push(given);
      return JSON.stringify(given);
    });
  const [one, other] = [{ title: 'one' }, { title: 'one' }];
  assert.equal(toJson(one), '{"title":"one"}');
  assert.equal(toJson(one), '{"title":"one"}');
  assert.deepEqual(made, [one]);
  // Equal is not the same.
  toJson(other);
  assert.equal(made.length, 2);
  // With 100 bytes beside two for each character, this one has one too many.
  const long = { title: 'x'.repeat(439) };
  toJson(long);
  toJson(long);
  assert.equal(made.length, 4);
  toJson(one);
  assert.equal(made.length, 4);
  const longest = { title: 'x'.repeat(438) };
  toJson(longest);
  toJson(longest);
  assert.equal(made.length, 5);
  // Beyond the bytes it starts anew.
  for (let count = 0; count < 10; count += 1) toJson({ count });
  toJson(one);
  assert.equal(made.length, 16);
});
