import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createResponseCache, type CurrentOrNot } from '../../dist/http/response-cache.js';
import {
  createToListResponse,
  type JsonList,
  type ListPage,
  type ToListResponse,
} from '../../dist/http/json-list.js';
import type { HttpResponse } from '../../dist/http/message.js';
import { createRecordTexts } from '../../dist/http/record-texts.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { withCode } from '../support/errors.js';
import { isLong } from '../support/long.js';
import { startServer } from '../support/server.js';

async function bodyOf({ body }: HttpResponse): Promise<string> {
  return body instanceof Readable ? text(body) : String(body);
}

const toJson = (item: unknown): string => JSON.stringify(item);

/** A list in pages of so many items; `asked` counts those that were read. */
function inPages<T>(items: readonly T[], size: number, asked = { pages: 0 }): JsonList<unknown, T> {
  const read = (start: number): ListPage<T> => {
    asked.pages += 1;
    const end = start + size;
    const next =
      end < items.length ? (): Promise<ListPage<T>> => Promise.resolve(read(end)) : undefined;
    return { records: items.slice(start, end), next };
  };
  return { key: undefined, read: () => read(0), toJson };
}

function createResponder(
  bytesMax = 0,
  pool = new MemoryPool(2 ** 30),
): ToListResponse<CurrentOrNot> {
  return createToListResponse(
    createResponseCache({ bytesMax, read: () => ({ version: '1', isCurrent: () => true }) }),
    pool,
  );
}

test('what is gathered over several pages is counted, and refused where there is no room', async () => {
  const items = Array.from({ length: 20 }, () => 'x'.repeat(100_000));
  const pool = new MemoryPool(16_000_000);
  const toResponse = createResponder(0, pool);
  const responses = Array.from({ length: 10 }, () =>
    Promise.resolve(inPages(items, 5))
      .then(toResponse)
      .then(
        (response) => response.status,
        (error: unknown) => (withCode('overloaded')(error) ? 'overloaded' : error),
      ),
  );
  const seen = await Promise.all(responses);
  assert.deepEqual(new Set(seen), new Set([200, 'overloaded']));
  assert.equal(pool.bytes, 0);
});

test('of all lists under way one goes on in each turn of the event loop', async () => {
  let turn = 0;
  const count = (): void => {
    turn += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const turns: number[] = [];
  const list = inPages(Array.from({ length: 10 }, String), 1);
  const noted = <T>(page: ListPage<T>): ListPage<T> => ({
    ...page,
    next:
      page.next &&
      (async () => {
        turns.push(turn);
        return noted(await (page.next as () => Promise<ListPage<T>>)());
      }),
  });
  const read = async (): Promise<ListPage<string>> => noted(await list.read(undefined));
  const toResponse = createResponder();
  await Promise.all(Array.from({ length: 4 }, async () => toResponse({ ...list, read })));
  clearImmediate(next);
  assert.equal(turns.length, 36);
  assert.equal(new Set(turns).size, 36);
});

test('the text of a record is made once for all lists', async () => {
  const responses = createResponseCache({
    bytesMax: 0,
    read: () => ({ version: '1', isCurrent: () => true }),
  });
  const pool = new MemoryPool(2 ** 30);
  const toResponse = createToListResponse(responses, pool, createRecordTexts(10_000));
  const [one, two] = [{ id: 1 }, { id: 2 }];
  const made: object[] = [];
  const list = (records: readonly object[]): Promise<string> => {
    const counted = (record: object): string => {
      made.push(record);
      return toJson(record);
    };
    return Promise.resolve(toResponse({ ...inPages(records, 1), toJson: counted })).then(bodyOf);
  };
  assert.equal(await list([one]), '[{"id":1}]');
  assert.equal(await list([one, two]), '[{"id":1},{"id":2}]');
  assert.deepEqual(made, [one, two]);
});

test('a small list is one buffer, a large one a stream of the same array', async () => {
  const rows: readonly (readonly [number, number, boolean])[] = [
    [0, 0, false],
    [1, 1, false],
    [1_000, 10, false],
    [1, 5_000_000, true],
    [50, 100_000, true],
    [350_000, 10, true],
  ];
  for (const [count, length, streamed] of rows) {
    const items = Array.from({ length: count }, (_, at) => `${at}ü`.padEnd(length, 'x'));
    for (const size of isLong ? [500, 3_000, Infinity] : [500, Infinity]) {
      const response = await createResponder()(inPages(items, size));
      assert.equal(response.body instanceof Readable, streamed);
      const type = ['Content-Type', 'application/json; charset=utf-8'];
      assert.deepEqual(response.headers, streamed ? type : [...type, 'ETag', '"1"']);
      assert.ok((await bodyOf(response)) === JSON.stringify(items));
    }
  }
});

test('a kept list is made once, a large one is not kept, and read once for each response', async () => {
  const asked = { pages: 0 };
  const toResponse = createResponder(1_000);
  const list = async (key: string, items: readonly string[]): Promise<string> =>
    bodyOf(await toResponse({ ...inPages(items, 1, asked), key }));
  assert.equal(await list('small', ['a']), '["a"]');
  assert.equal(await list('small', ['b']), '["a"]');
  assert.equal(asked.pages, 1);
  const large = Array.from({ length: 5 }, () => 'x'.repeat(1_000_000));
  assert.ok((await list('large', large)) === JSON.stringify(large));
  assert.ok((await list('large', large)) === JSON.stringify(large));
  assert.equal(asked.pages, 11);
});

test('a long list is read no faster than it is taken', async () => {
  const asked = { pages: 0 };
  const items = Array.from({ length: 100 }, () => 'x'.repeat(1_000_000));
  const { body } = await createResponder()(inPages(items, 1, asked));
  assert.ok(body instanceof Readable);
  const pieces = body[Symbol.asyncIterator]();
  for (let taken = 0; taken < 10; taken += 1) await pieces.next();
  assert.ok(asked.pages < 20, `${asked.pages} pages`);
  await pieces.return?.();
});

test('beyond so many long lists at a time more are refused, until one is done', async () => {
  const items = Array.from({ length: 50 }, () => 'x'.repeat(100_000));
  const toResponse = createResponder();
  const ask = async (): Promise<HttpResponse> => toResponse(inPages(items, 10));
  const taken = [];
  for (let count = 0; count < 16; count += 1) taken.push(await ask());
  await assert.rejects(ask, withCode('overloaded'));
  assert.equal((await toResponse(inPages(['a'], 1))).body, '["a"]');
  for (const response of taken.slice(1)) (response.body as Readable).destroy();
  assert.ok((await bodyOf(taken[0] as HttpResponse)) === JSON.stringify(items));
  ((await ask()).body as Readable).destroy();
});

test('a list whose reading fails in the middle is cut short, never ended', async () => {
  const items = Array.from({ length: 50 }, () => 'x'.repeat(100_000));
  const whole = inPages(items, 48);
  const failing: JsonList<unknown, string> = {
    ...whole,
    read: () => ({
      records: items,
      next: () => Promise.reject(new Error('the store is away')),
    }),
  };
  const { body } = await createResponder()(failing);
  assert.ok(body instanceof Readable);
  await assert.rejects(text(body), /the store is away/);
});

test('others are served while a list of many megabytes is under way', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  // Six characters of JSON for each of its own.
  const post = { title: 'a', content: '\u0001'.repeat(170_000) };
  for (let count = 0; count < 16; count += 1) await server.send('POST', '/posts', post);
  const ended: string[] = [];
  let length = 0;
  const readList = async (): Promise<void> => {
    const response = await server.fetch('/posts');
    for await (const chunk of response.body ?? []) length += (chunk as Uint8Array).length;
    ended.push('list');
  };
  const greet = async (): Promise<void> => {
    await (await server.fetch('/hello')).text();
    ended.push('hello');
  };
  await Promise.all([readList(), greet()]);
  assert.ok(length > 16_000_000);
  assert.deepEqual(ended, ['hello', 'list']);
  assert.equal((await server.fetch('/posts', { method: 'HEAD' })).status, 200);
});
