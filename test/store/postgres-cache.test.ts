/** Cached responses over PostgreSQL, which other programs write to. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonTextResponse } from '../../dist/http/message.js';
import type { TrackedRecords } from '../../dist/records/tracked-records.js';
import { createResponseCache } from '../../dist/records/response-cache.js';
import { times } from '../support/lists.js';
import { skipPostgres as skip } from '../support/postgres.js';
import { startServer } from '../support/server.js';
import { database } from '../support/shared-postgres.js';
import { openOn, openSession } from '../support/stores.js';
import { until } from '../support/until.js';

test('commits are seen at once, in whichever order they were begun', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const server = await startServer(t, { env: { STORE_URL: url } });
  const todos = async (): Promise<string> => (await server.fetch('/api/todos')).text();
  const sessions = [openSession(t, url), openSession(t, url)] as const;
  const ids = await sessions[0]<{ id: string }[]>`SELECT id FROM inkwell.todos ORDER BY seq`;
  for (const [at, session] of sessions.entries()) {
    const id = ids[at]?.id ?? '';
    await session`BEGIN`;
    await session`UPDATE inkwell.todos SET title = title || 'x' WHERE id = ${id}`;
  }
  // The transaction with the higher number is committed first.
  for (const session of sessions.toReversed()) {
    let before = '';
    for (const _ of times(3)) before = await todos();
    await session`COMMIT`;
    assert.notEqual(await todos(), before);
  }
});

test('a response is cached while nobody commits', { skip }, async (t) => {
  const store = await openOn(t, await database.emptyDatabase());
  const responses = createResponseCache({ store, run: 'run', bytesMax: 10_000 });
  let made = 0;
  const make = async (records: TrackedRecords) => {
    made += 1;
    await records.posts.all.read();
    return jsonTextResponse(200, '[]');
  };
  // Other tests may commit to other databases of the same server.
  await until(async () => {
    const before = made;
    await responses.respond('key', make);
    return made === before;
  });
  await store.posts.create({ title: 'a', content: 'b', authorId: null });
  const before = made;
  await responses.respond('key', make);
  assert.equal(made, before + 1);
});

test('equal mutations that arrive together are carried out one by one', { skip }, async (t) => {
  const server = await startServer(t, { env: { STORE_URL: await database.emptyDatabase() } });
  const body = JSON.stringify({
    query: 'mutation { createPost(createPostInput: { title: "same", content: "same" }) }',
  });
  const create = async (): Promise<string> => {
    const headers = { 'Content-Type': 'application/json' };
    const response = await server.fetch('/graphql', { method: 'POST', headers, body });
    const { data } = (await response.json()) as { data: { createPost: string } };
    return data.createPost;
  };
  // The first ones open connections, so that the others arrive in the same iterations.
  for (const count of [50, 50, 50]) {
    const ids = await Promise.all(times(count).map(create));
    assert.equal(new Set(ids).size, count);
  }
});

test('a database that does not answer is no reason to send what is cached', { skip }, async (t) => {
  const store = await openOn(t, await database.emptyDatabase());
  const responses = createResponseCache({ store, run: 'run', bytesMax: 10_000 });
  const make = async (records: TrackedRecords) => {
    await records.posts.all.read();
    return jsonTextResponse(200, '[]');
  };
  await responses.respond('key', make);
  await store.close();
  await assert.rejects(async () => responses.respond('key', make), { code: 'unavailable' });
});
