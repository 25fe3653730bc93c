import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createScheduler } from '../../dist/scheduler.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import {
  createToListResponse,
  type JsonList,
  type ToListResponse,
} from '../../dist/records/list-response.js';
import type { HttpResponse } from '../../dist/http/message.js';
import type { Page } from '../../dist/store/store.js';
import { isLong } from '../support/long.ts';
import { startServer } from '../support/server.ts';

async function bodyOf({ body }: HttpResponse): Promise<string> {
  return body instanceof Readable ? text(body) : String(body);
}

const toJson = (item: unknown): string => JSON.stringify(item);

/** A list in pages of so many items; `asked` counts those that were read. */
function inPages<T>(items: readonly T[], size: number, asked = { pages: 0 }): JsonList<T> {
  const read = (start: number): Page<T> => {
    asked.pages += 1;
    const end = start + size;
    const next =
      end < items.length ? (): Promise<Page<T>> => Promise.resolve(read(end)) : undefined;
    return { records: items.slice(start, end), next };
  };
  return { version: '1', first: read(0), toJson };
}

function createResponder(pool = new MemoryPool(2 ** 30), pageBytes = 0): ToListResponse {
  return createToListResponse({ pool, run: createScheduler().run }, pageBytes);
}

test('a small list is one buffer, a large one a stream of the same array', async () => {
  const rows: readonly (readonly [number, number, boolean])[] = [
    [0, 0, false],
    [1, 1, false],
    [1_000, 10, false],
    // With its quotes as many characters as one buffer has at most, and one more.
    [1, 4_194_302, false],
    [1, 4_194_303, true],
    [50, 100_000, true],
    [isLong ? 350_000 : 35_000, isLong ? 10 : 120, true],
  ];
  for (const [count, length, streamed] of rows) {
    const items = Array.from({ length: count }, (_, at) => `${at}ü`.padEnd(length, 'x'));
    for (const size of isLong ? [500, 3_000, Infinity] : [500, Infinity]) {
      const pool = new MemoryPool(2 ** 30);
      const response = await createResponder(pool)(inPages(items, size));
      assert.equal(pool.bytes > 0, streamed, `${size}`);
      assert.equal(response.body instanceof Readable, streamed, `${size}`);
      const type = ['Content-Type', 'application/json; charset=utf-8'];
      const tagged = [...type, 'Cache-Control', 'no-cache', 'ETag', '"1"'];
      assert.deepEqual(response.headers, streamed ? type : tagged, `${size}`);
      assert.ok((await bodyOf(response)) === JSON.stringify(items), `${size}`);
    }
  }
});

test('equal long lists of one page are streams of their own', async () => {
  const items = Array.from({ length: 50 }, () => 'x'.repeat(100_000));
  const list: JsonList<string> = { version: undefined, first: inPages(items, 50).first, toJson };
  const toResponse = createResponder();
  const [one, other] = await Promise.all([toResponse(list), toResponse(list)]);
  (one.body as Readable).destroy();
  assert.ok((await bodyOf(other)) === JSON.stringify(items));
});

test('a long list counts a page and a piece while its client reads, and nothing after', async () => {
  const items = Array.from({ length: 50 }, () => 'x'.repeat(100_000));
  const pool = new MemoryPool(10_000_000);
  const toResponse = createResponder(pool, 1_000_000);
  const ask = async (): Promise<HttpResponse> => toResponse(inPages(items, 50));
  const first = await ask();
  assert.ok(pool.bytes > 1_000_000 && pool.bytes < 1_200_000, `${pool.bytes}`);
  const pieces = (first.body as Readable)[Symbol.asyncIterator]();
  for (let taken = 0; taken < 3; taken += 1) await pieces.next();
  assert.ok(pool.bytes > 1_000_000 && pool.bytes < 1_300_000, `${pool.bytes}`);
  const more: HttpResponse[] = [];
  await assert.rejects(
    async () => {
      for (;;) more.push(await ask());
    },
    { code: 'overloaded', facts: { retryAfterSeconds: 5 } },
  );
  assert.ok(more.length > 2, `${more.length} more`);
  // As for HEAD: before anything was read.
  for (const { body } of more) (body as Readable).destroy();
  await pieces.return?.();
  await new Promise(setImmediate);
  assert.equal(pool.bytes, 0);
  assert.ok((await bodyOf(await ask())) === JSON.stringify(items));
});

test('a list whose reading fails in the middle is cut short, never ended', async () => {
  const items = Array.from({ length: 50 }, () => 'x'.repeat(100_000));
  const whole = inPages(items, 48);
  const failing: JsonList<string> = {
    ...whole,
    first: { records: items, next: () => Promise.reject(new Error('the store is away')) },
  };
  const { body } = await createResponder()(failing);
  assert.ok(body instanceof Readable);
  await assert.rejects(text(body), /the store is away/);
});

test('a list of several pages is not made for HEAD, 304 and 412 where its tag is known', async (t) => {
  const server = await startServer(t); // with three todos
  const create = (): Promise<unknown> => server.send('POST', '/api/todos', { title: 'a' });
  // A page has 500.
  for (let count = 0; count < 501; count += 167)
    await Promise.all(Array.from({ length: 167 }, create));
  const ask = (method: string, headers: Record<string, string> = {}): Promise<Response> =>
    server.fetch('/api/todos', { method, headers });
  const head = await ask('HEAD');
  const etag = head.headers.get('etag') ?? '';
  assert.equal(head.headers.get('content-length'), null);
  assert.equal((await ask('GET', { 'If-None-Match': etag })).status, 304);
  assert.equal((await ask('GET', { 'If-Match': '"other"' })).status, 412);
  const whole = await ask('GET');
  assert.equal(((await whole.json()) as unknown[]).length, 3 + 501);
  for (const name of ['etag', 'content-type', 'cache-control'])
    assert.equal(head.headers.get(name), whole.headers.get(name), name);
  // What GET has made is there for HEAD too.
  const length = whole.headers.get('content-length');
  assert.equal((await ask('HEAD')).headers.get('content-length'), length);
});
