import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { it } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { type HttpResponse, jsonTextResponse } from '../../dist/http/message.js';
import type { TrackedRecords } from '../../dist/records/tracked-records.js';
import {
  createRecordTexts,
  createResponseCache,
  toJsonBody,
} from '../../dist/records/response-cache.js';
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

it('a response is made once, until what it was made from is written to', async () => {
  const { store, ask } = open();
  assert.equal(await ask('a', 'one'), 'one');
  assert.equal(await ask('a', 'again'), 'one');
  assert.equal(await ask('b', 'other'), 'other');
  await store.posts.create({ title: 'a', content: 'b', authorId: null });
  assert.equal(await ask('a', 'again'), 'one');
  await store.todos.create(todo);
  assert.equal(await ask('a', 'two'), 'two');
  assert.equal(await ask('a', 'again'), 'two');
});

it('a write that comes while a response is made keeps it from being cached', async () => {
  const { store, ask } = open();
  assert.equal(await ask('a', 'old', () => store.todos.create(todo)), 'old');
  assert.equal(await ask('a', 'new'), 'new');
});

it('what an equal request may not get is not cached', async () => {
  const { responses } = open();
  for (const body of ['one', 'two']) {
    const make = () => ({ ...jsonTextResponse(200, body), isUncacheable: true });
    assert.equal((await responses.respond('a', make, { reader })).body, body, body);
  }
});

it('what others have made while a request waited for its turn is not made again', async () => {
  const { store, responses } = open();
  const waiting: (() => void)[] = [];
  const runInTurn = async <T>(work: () => T | Promise<T>): Promise<T> => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return work();
  };
  let made = 0;
  const ask = async (): Promise<unknown> => {
    const make = async (records: TrackedRecords): Promise<HttpResponse> => {
      await records.todos.all.read();
      return jsonTextResponse(200, String((made += 1)));
    };
    return (await responses.respond('a', make, { reader, runInTurn })).body;
  };
  for (const expected of ['1', '2']) {
    const both = [ask(), ask()];
    while (waiting.length > 0) {
      waiting.shift()?.();
      await nextIteration();
    }
    assert.deepEqual(await Promise.all(both), [expected, expected], expected);
    await store.todos.create(todo);
  }
});

it('keys and responses stay within their bytes, and the oldest give way', async () => {
  const { store, ask } = open(6_000);
  for (let number = 0; number < 50; number += 1) await ask(`k${number}`, 'x'.repeat(40));
  let seen = 0;
  while ((await ask(`k${49 - seen}`, 'again')) !== 'again') seen += 1;
  assert.equal(seen, Math.floor(6_000 / 591));
  // What is out of date counts, and gives way like the rest.
  await store.todos.create(todo);
  await ask('new', 'y');
  assert.equal(await ask('new', 'again'), 'y');
  await ask('too large', 'x'.repeat(6_001));
  assert.equal(await ask('too large', 'again'), 'again');
});

it('a response counts 500 bytes, eight for each record that it depends on, its key and text', async () => {
  for (const [bytesMax, isCached] of [
    [500 + 20 * 8 + 1 + 6, true],
    [500 + 20 * 8 + 1 + 5, false],
  ] as const) {
    const { responses } = open(bytesMax);
    const ask = async (body: string): Promise<unknown> => {
      const make = async (records: TrackedRecords): Promise<HttpResponse> => {
        for (let id = 0; id < 20; id += 1) await records.todos.find(`${id}`);
        return jsonTextResponse(200, body);
      };
      return (await responses.respond('k', make, { reader })).body;
    };
    assert.equal(await ask('one'), 'one');
    assert.equal(await ask('two'), isCached ? 'one' : 'two');
  }
});

it('nothing is cached without bytes for it', async () => {
  const { ask } = open(0);
  assert.deepEqual([await ask('a', 'one'), await ask('a', 'two')], ['one', 'two']);
});

/** A store that others write to, as a database server is; `fault` ends what it is asked. */
function newSharedStore() {
  const state = { number: 0, asked: 0, sent: 0, fault: undefined as Error | undefined };
  let last = 0;
  const { changes, todos, ...rest } = newStore();
  /** Sends reads at the end of the iteration. */
  const read: typeof todos.all.read = async (range) => {
    await nextIteration();
    state.sent += 1;
    return todos.all.read(range);
  };
  const store: Store = {
    ...rest,
    todos: { ...todos, all: { ...todos.all, read } },
    changes,
    readsSent: () => state.sent,
    async readChanges() {
      state.asked += 1;
      await Promise.resolve();
      if (state.fault) throw state.fault;
      if (state.number !== last) changes().countEverything();
      last = state.number;
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
  const [one, other] = await Promise.all(
    [1, 2].map(async () => responses.respond('a', toStream, { reader })),
  );
  assert.ok(one?.body instanceof Readable && other?.body instanceof Readable);
  assert.notEqual(one.body, other.body);
  await ask('b', 'one');
  state.fault = new Error('Away.');
  await assert.rejects(ask('b', 'two'), state.fault);
});

it('equal reads of one turn share their first response, and what may be a mutation does not', async (t) => {
  const { responses } = open(10_000, newSharedStore().store);
  let made = 0;
  const make = () => ({ ...jsonTextResponse(200, String((made += 1))), isUncacheable: true });
  for (const [isRead, expected] of [
    [true, ['1', '1']],
    [false, ['2', '3']],
  ] as const) {
    await t.test(JSON.stringify([isRead, expected]), async () => {
      const both = [1, 2].map(async () => responses.respond('a', make, { reader, isRead }));
      const bodies = (await Promise.all(both)).map(({ body }) => body);
      assert.deepEqual(bodies, expected);
      await nextIteration();
    });
  }
  assert.equal((await responses.respond('a', make, { reader, isRead: true })).body, '4');
});

it('what one reader gets is not shared with another who asks in the same turn', async () => {
  const { responses } = open(10_000, newSharedStore().store);
  const make = ({ reader: asking }: TrackedRecords): HttpResponse =>
    jsonTextResponse(200, JSON.stringify(asking));
  const people = [undefined, 'ann', 'bob'].map((id) => ({ id, isAdmin: false }));
  const readers = [...people, { id: 'eve', isAdmin: true }, ...people];
  const asked = readers.map(async (who) =>
    responses.respond('a', make, { reader: who, isRead: true }),
  );
  const bodies = (await Promise.all(asked)).map(({ body }) => body);
  assert.deepEqual(
    bodies,
    readers.map((who) => JSON.stringify(who)),
  );
});

it('what was read before a request came is not its response', async () => {
  const { state, store } = newSharedStore();
  const { responses } = open(10_000, store);
  let made = 0;
  const make = () => ({ ...jsonTextResponse(200, String((made += 1))), isUncacheable: true });
  const ask = async () => (await responses.respond('a', make, { reader, isRead: true })).body;
  const before = [ask(), ask()];
  // In the same iteration of the event loop, but after the read of the first two.
  state.sent += 1;
  const after = [ask(), ask()];
  assert.deepEqual(await Promise.all([...before, ...after]), ['1', '1', '2', '2']);
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
