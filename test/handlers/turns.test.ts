/** What many clients ask for at once keeps nobody waiting who needs nothing (R47). */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { times } from '../support/lists.ts';
import { connectRaw, get, type RawClient } from '../support/raw-client.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { inSqliteFile } from '../support/stores.ts';

/** The number of clients that ask at once. */
const clientCount = 60;
const { skip, newUrl } = inSqliteFile;

test('pages of 1,000 posts are read one after the other', { skip }, async (t) => {
  const server = await startServer(t, {
    env: { STORE_URL: await newUrl(t), ADMIN_PORT: '0', DEMO_DATA: 'false' },
  });
  const post = { title: 'a', content: 'text' };
  for (const round of times(22)) {
    const made = await Promise.all(times(50).map(() => server.send('POST', '/posts', post)));
    assert.ok(
      made.every(({ status }) => status === 201),
      `round ${round}`,
    );
  }
  const posts = (await (await server.fetch('/posts')).json()) as readonly { id: string }[];
  const paths = posts.slice(0, clientCount).map(({ id }) => `/posts?limit=1000&after=${id}`);
  assert.ok((await countReads(t, server, paths)) < clientCount / 2);
});

/** Returns the number of reads between two looks at the metrics, with all requests sent between. */
async function countReads(
  t: TestContext,
  server: TestServer,
  paths: readonly string[],
): Promise<number> {
  const clients = await Promise.all(paths.map(() => connectRaw(t, server.port)));
  // libuv accepts one connection in an iteration of the event loop: here all are accepted before.
  for (const client of clients) await client.ask(get('/hello'));
  const admin = await connectRaw(t, Number(new URL(server.adminUrl).port));
  const before = await readCount(admin);
  for (const [at, path] of paths.entries()) clients[at]?.send(get(path));
  const after = await readCount(admin);
  for (const client of clients) {
    assert.equal((await client.response()).status, 200);
    client.destroy();
  }
  return after - before;
}

async function readCount(admin: RawClient): Promise<number> {
  const { body } = await admin.ask(get('/metrics'));
  const name = 'inkwell_store_statement_duration_seconds_count{kind="read"}';
  const line = body
    .toString()
    .split('\n')
    .find((one) => one.startsWith(name));
  return Number(line?.slice(name.length));
}
