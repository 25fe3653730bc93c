/** What many clients ask for at once keeps nobody waiting who needs nothing (R47). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { times } from '../support/lists.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { inSqliteFile } from '../support/stores.ts';

const { skip, newUrl } = inSqliteFile;

test('pages of 1,000 posts are read one after the other', { skip }, async (t) => {
  const env = { STORE_URL: await newUrl(t), ADMIN_PORT: '0', DEMO_DATA: 'false' };
  const server = await startServer(t, { env });
  const post = { title: 'a', content: 'text' };
  for (const _ of times(22)) await Promise.all(times(50).map(() => server.make('/posts', post)));
  const posts = (await server.read<{ id: string }[]>('/posts')).slice(0, 60);
  const clients = await Promise.all(posts.map(() => connectRaw(t, server.port)));
  // libuv accepts one connection in an iteration of the event loop: here all are accepted before.
  for (const client of clients) await client.ask(get('/hello'));
  const admin = await connectRaw(t, Number(new URL(server.adminUrl).port));
  const readCount = async (): Promise<number> => {
    const { body } = await admin.ask(get('/metrics'));
    const name = /^inkwell_store_statement_duration_seconds_count\{kind="read"\} (\d+)$/m;
    return Number(name.exec(body.toString())?.[1]);
  };
  // The reads between two looks at the metrics, with all requests sent between.
  const before = await readCount();
  for (const [at, { id }] of posts.entries()) {
    clients[at]?.send(get(`/posts?limit=1000&after=${id}`));
  }
  const after = await readCount();
  for (const client of clients) assert.equal((await client.response()).status, 200);
  assert.ok(after - before < 30, `${after - before} reads`);
});
