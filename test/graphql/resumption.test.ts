/** What happens while a subscriber reads what it has missed: events, others who read, and faults. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AppError } from '../../dist/errors.js';
import type { Engine } from '../../dist/graphql/engine.js';
import { type EndpointOptions, startEndpoint } from '../support/graphql-endpoint.ts';
import { gate } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { after, type Told, toQuery, toWord } from '../support/resuming.ts';
import { until } from '../support/until.ts';
import { connectReady, type HandClient, subscribe } from '../support/ws-clients.ts';

/** An endpoint with a backlog of comments, which nobody reads until `open` is called. */
async function startHeld(t: TestContext, backlog: readonly string[], options?: EndpointOptions) {
  const endpoint = await startEndpoint(t, options);
  const { comments } = endpoint.store;
  endpoint.comment('first');
  const [first] = (await comments.ofPost(endpoint.postId).read()).records.slice(-1);
  for (const text of backlog) endpoint.comment(text);
  const query = toQuery(after(first?.id));
  const { opened, open } = gate();
  let waiting = 0;
  const real = comments.after;
  t.mock.method(comments, 'after', async (...args: Parameters<typeof real>) => {
    waiting += 1;
    // What is stored from now on is no part of the page, but held.
    const page = await real(...args);
    await opened;
    return page;
  });
  const resume = async (count: number): Promise<HandClient> => {
    const client = await connectReady(endpoint.port);
    t.after(() => client.socket.terminate());
    for (const at of times(count)) client.send(subscribe(`${at}`, query));
    await client.settle();
    return client;
  };
  return { ...endpoint, resume, open, reading: () => waiting };
}

async function hear(client: HandClient, words: readonly string[]): Promise<void> {
  for (const word of words) assert.equal(toWord((await client.next()).payload as Told), word);
}

for (const [count, length, what] of [
  [10, 1_000, 'some'],
  [150, 1_000, 'more than a page'],
  [1, 40_000, 'a long one'],
] as const) {
  test(`comments that come while a page is read follow it, each once: ${what}`, async (t) => {
    const { comment, resume, open, reading } = await startHeld(t, ['a', 'b']);
    const client = await resume(1);
    await until('a page that is read', () => reading() > 0);
    const texts = times(count).map((at) => `${at}`.padStart(length, 'x'));
    for (const text of texts) comment(text);
    await client.settle();
    open();
    await hear(client, ['a', 'b', ...texts]);
    comment('live');
    await hear(client, ['live']);
  });
}

test('those who resume need no memory for what comes meanwhile', async (t) => {
  const env = { REQUEST_MEMORY_BYTES_MAX: '1048576' };
  const { pool, comment, resume, open } = await startHeld(t, ['a'], { env });
  const client = await resume(10);
  for (const at of times(10)) comment(`${at}`.padStart(1_000, 'x'));
  await client.settle();
  assert.ok(pool.lastingBytes < 50_000, `${pool.lastingBytes}`);
  open();
  const heard = new Map<string | undefined, string[]>();
  for (const _ of times(110)) {
    const { id, payload } = await client.next();
    heard.set(id, [...(heard.get(id) ?? []), toWord(payload as Told).replace(/^x+/, '')]);
  }
  for (const words of heard.values()) assert.deepEqual(words, ['a', ...times(10).map(String)]);
});

test('each comes once if the store fails in the middle of a page', async (t) => {
  const reader = { id: undefined, isAdmin: true, hasOwners: true, isModerated: false };
  const wrap = (engine: Engine) => ({ ...engine, hasOwners: true, readerOf: () => reader });
  const { store, resume, open, comment } = await startHeld(t, ['a', 'b'], { wrap });
  const find = t.mock.method(store.posts, 'find');
  const fail = (): never => {
    throw new AppError('unavailable', 'away');
  };
  // The first is for the place, the second for the page.
  find.mock.mockImplementationOnce(fail, 0);
  find.mock.mockImplementationOnce(fail, 2);
  open();
  const client = await resume(1);
  await hear(client, ['a', 'b']);
  comment('c');
  await hear(client, ['c']);
});
