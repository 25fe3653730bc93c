import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { it } from 'node:test';
import { type HttpResponse, jsonTextResponse } from '../../dist/http/message.js';
import { isPromise } from '../../dist/maybe-promise.js';
import {
  createRecordTexts,
  createResponseCache,
  toJsonBody,
} from '../../dist/records/response-cache.js';
import { createMemoryStore } from '../../dist/store/memory.js';
import { initialData } from '../../dist/store/seed.js';
import type { Store } from '../../dist/store/store.js';
import { driverOptions } from '../support/driver-options.js';

function open(bytesMax = 10_000, store = newStore()) {
  const responses = createResponseCache({ store, run: 'run', bytesMax });
  /** Begins a response that reads todos; the result makes and caches it. */
  const begin = (key: string, records = responses.read()): ((body: string) => HttpResponse) => {
    void records.todos;
    return (body) => responses.store(key, records, jsonTextResponse(200, body));
  };
  /** What is responded: `body`, where that was made now. */
  const ask = (key: string, body: string): unknown => {
    const response = responses.respond(key, (records) => begin(key, records)(body));
    return isPromise(response) ? response.then((made) => made.body) : response.body;
  };
  return { store, ask, begin, responses };
}

function newStore(): Store {
  return createMemoryStore(driverOptions({ initial: initialData([], true) }));
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
  assert.equal(finish('old').body, 'old');
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

it('nothing is cached without bytes for it', () => {
  const { ask } = open(0);
  assert.deepEqual([ask('a', 'one'), ask('a', 'two')], ['one', 'two']);
});

/** A store that others write to, as a database server is; `fault` ends what it is asked. */
function newSharedStore() {
  const state = { number: 0, asked: 0, fault: undefined as Error | undefined };
  const toVersions = (number: number) => ({ ...newStore().versions(), todos: number });
  let last = toVersions(0);
  const store: Store = {
    ...newStore(),
    versions: () => last,
    async readVersions() {
      state.asked += 1;
      await Promise.resolve();
      if (state.fault) throw state.fault;
      last = toVersions(state.number);
      return last;
    },
  };
  return { state, store };
}

it('a store that others write to is asked before a cached response is sent', async () => {
  const { state, store } = newSharedStore();
  const { ask } = open(10_000, store);
  const read = async (...bodies: string[]): Promise<unknown[]> => {
    const found: unknown[] = [];
    for (const body of bodies) found.push(await ask('a', body));
    return found;
  };
  assert.deepEqual(await read('one', 'two', 'three'), ['one', 'one', 'one']);
  assert.equal(state.asked, 2);
  state.number += 1;
  assert.deepEqual(await read('four', 'five'), ['four', 'four']);
  assert.equal(state.asked, 4);
  // What is known to be out of date is not asked for again.
  await ask('b', 'other');
  state.number += 1;
  await ask('b', 'other');
  assert.equal(state.asked, 5);
  assert.deepEqual(await read('six'), ['six']);
  assert.equal(state.asked, 5);
});

it('requests of one turn share what is made anew, but no stream and no failure to ask', async () => {
  const { state, store } = newSharedStore();
  const { ask, responses } = open(10_000, store);
  await ask('a', 'one');
  state.number += 1;
  const both = [ask('a', 'two'), ask('a', 'three')];
  assert.deepEqual(await Promise.all(both), ['two', 'two']);
  state.number += 1;
  const toStream = () => ({ ...jsonTextResponse(200, ''), body: Readable.from(['x']) });
  const [one, other] = await Promise.all([1, 2].map(async () => responses.respond('a', toStream)));
  assert.ok(one?.body instanceof Readable && other?.body instanceof Readable);
  assert.notEqual(one.body, other.body);
  await ask('b', 'one');
  state.fault = new Error('Away.');
  await assert.rejects(async () => ask('b', 'two'), state.fault);
});

it('equal reads of one turn share their first response, and what may be a mutation does not', async () => {
  const { responses } = open(10_000, newSharedStore().store);
  let made = 0;
  const make = (): HttpResponse => jsonTextResponse(200, String((made += 1)));
  for (const [isRead, expected] of [
    [true, ['1', '1']],
    [false, ['2', '3']],
  ] as const) {
    const both = [1, 2].map(async () => responses.respond('a', make, isRead));
    const bodies = (await Promise.all(both)).map(({ body }) => body);
    assert.deepEqual(bodies, expected);
  }
  assert.equal((await responses.respond('a', make, true)).body, '4');
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
