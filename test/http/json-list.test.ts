import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import {
  type AnswerCache,
  createAnswerCache,
  type CurrentOrNot,
} from '../../dist/http/answer-cache.js';
import { listReply } from '../../dist/http/json-list.js';
import type { HttpReply } from '../../dist/http/message.js';
import { startServer } from '../support/server.ts';

async function bodyOf({ body }: HttpReply): Promise<string> {
  return body instanceof Readable ? text(body) : String(body);
}

function openAnswers(bytesMax: number): AnswerCache<CurrentOrNot> {
  return createAnswerCache({ bytesMax, read: () => ({ version: '1', isCurrent: () => true }) });
}

const toJson = (item: unknown): string => JSON.stringify(item);

test('a small list is one buffer, a large one a stream of the same array', async () => {
  const rows: readonly (readonly [number, number, boolean])[] = [
    [0, 0, false],
    [1, 1, false],
    [1_000, 10, false],
    [1, 5_000_000, true],
    [50, 100_000, true],
    [500_000, 10, true],
  ];
  for (const [count, length, streamed] of rows) {
    const items = Array.from({ length: count }, (_, at) => `${at}ü`.padEnd(length, 'x'));
    const list = (): readonly string[] => items;
    const reply = await listReply(openAnswers(0), { key: 'a', list, toJson });
    assert.equal(reply.body instanceof Readable, streamed);
    const type = ['Content-Type', 'application/json; charset=utf-8'];
    assert.deepEqual(reply.headers, streamed ? type : [...type, 'ETag', '"1"']);
    assert.ok((await bodyOf(reply)) === JSON.stringify(items));
  }
});

test('a kept list is made once, a large one is not kept', async () => {
  let asked = 0;
  const answers = openAnswers(1_000);
  const list = (key: string, items: readonly string[]): Promise<string> => {
    const ask = (): readonly string[] => {
      asked += 1;
      return items;
    };
    return Promise.resolve(listReply(answers, { key, list: ask, toJson })).then(bodyOf);
  };
  assert.equal(await list('small', ['a']), '["a"]');
  assert.equal(await list('small', ['b']), '["a"]');
  assert.equal(asked, 1);
  const large = Array.from({ length: 5 }, () => 'x'.repeat(1_000_000));
  assert.ok((await list('large', large)) === JSON.stringify(large));
  assert.ok((await list('large', large)) === JSON.stringify(large));
});

test('others are served while a list of forty megabytes is under way', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  // Six characters of JSON for each of its own.
  const post = { title: 'a', content: '\u0001'.repeat(170_000) };
  for (let count = 0; count < 40; count += 1) await server.send('POST', '/posts', post);
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
  assert.ok(length > 40_000_000);
  assert.deepEqual(ended, ['hello', 'list']);
  assert.equal((await server.fetch('/posts', { method: 'HEAD' })).status, 200);
});
