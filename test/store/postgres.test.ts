/** What PostgreSQL has beyond the contract: its tables, and what several nodes tell each other. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from 'pg';
import { codeOf } from '../../dist/errors.js';
import type { openStore as OpenStore } from '../../dist/store/open.js';
import { openStore } from '../../dist/store/open.js';
import type { Comment } from '../../dist/store/model.js';
import { openStore as openPostgresStore } from '../../dist/store/postgres/open.js';
import { allOf, pluck, times } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { driverOptions } from '../support/driver-options.ts';
import { openSession } from '../support/session.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { createDirectory, store as storeFiles } from '../support/uploads.ts';
import { watching } from '../support/watching.ts';
import { listDurable, openDurable } from './upload-places.ts';

test('STORE_CONNECTIONS_MAX: fifty readers share half as many connections', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const limits = { STORE_TIMEOUT_SECONDS: '600', IDLE_TIMEOUT_SECONDS: '600' };
  const env = { STORE_URL: url, STORE_CONNECTIONS_MAX: '4', ...limits };
  const service = await startServer(t, { env });
  const session = openSession(t, url);
  const responses = await session.begin(async () => {
    await session`LOCK TABLE inkwell.comments IN ACCESS EXCLUSIVE MODE`;
    const reads = times(50).map(() => service.fetch(`/comments/${randomUUID()}`));
    await until('two statements that wait for the lock', async () => {
      const waiting = await session`SELECT FROM pg_locks
        WHERE relation = 'inkwell.comments'::regclass AND NOT granted`;
      return waiting.length > 1;
    });
    return { all: Promise.all(reads) };
  });
  assert.deepEqual(new Set(pluck(await responses.all, 'status')), new Set([404]));
  const statement = `select count(*)::int as connections from pg_stat_activity
    where datname = current_database() and application_name = 'inkwell'
    and query not like 'LISTEN%'`;
  const [found] = await database.query(url, statement);
  assert.equal(found?.['connections'], 2);
});

test('a database is made once by ten nodes that start at the same time', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const stores = await Promise.all(times(10).map(() => openOn(t, url)));
  for (const [at, store] of stores.entries())
    assert.equal((await allOf(store.posts.all)).length, 3, `store ${at}`);
});

/** A comment that another program inserts. */
function insert(postId: string, content: string): string {
  return `INSERT INTO inkwell.comments (id, post_id, content, created_at)
    VALUES ('${randomUUID()}', '${postId}', '${content}', '2026-01-01T00:00:00')`;
}

test('a node that watches hears what all programs store from then on', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const [node, other] = [await openOn(t, url), await openOn(t, url)];
  const { id } = await node.posts.create({ title: 'a', content: 'b', authorId: null });
  let leave: (() => void) | undefined;
  for (let again = 0; again < 2; again += 1) {
    await other.comments.add(id, 'of before');
    const heard: string[] = [];
    const stop = node.comments.watch(({ comment: { content } }) => heard.push(content));
    leave?.(); // once more, when the next one listens
    await node.comments.add(id, 'own');
    await other.comments.add(id, 'of another');
    await database.query(url, insert(id, 'of SQL'));
    await until('three comments', () => heard.length >= 3);
    leave = stop ?? undefined;
    leave?.();
    await node.comments.add(id, 'not watched');
    assert.deepEqual(heard, ['own', 'of another', 'of SQL'], `round ${again}`);
  }
});

test('other nodes are told of each comment, also of one that is approved', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const { posts, comments } = await openOn(t, url);
  const listener = new Client({ connectionString: url });
  t.after(() => listener.end());
  let told = 0;
  listener.on('notification', () => (told += 1));
  await listener.connect();
  await listener.query('LISTEN inkwell_comments');
  const { id } = await posts.create({ title: 'a', content: 'b', authorId: null });
  const waiting = (await comments.add(id, 'waits', { isPending: true })) as Comment;
  const add = () => comments.add(id, 'c');
  for (const [at, act] of [add, add, () => comments.approve(waiting.id)].entries()) {
    await act();
    await until(`notification ${at}`, () => told === at + 1);
  }
});

test('a comment waits for those that were numbered before it', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const node = await openOn(t, url, { timeoutSeconds: 5 });
  const { id } = await node.posts.create({ title: 'a', content: 'b', authorId: null });
  const heard: string[] = [];
  node.comments.watch(({ comment: { content } }) => heard.push(content));
  await watching([node]);
  const session = openSession(t, url);
  const later = await session.begin(async () => {
    await session.run(insert(id, 'first'));
    const added = Promise.resolve(node.comments.add(id, 'second'));
    await until('a statement that waits for its turn', async () => {
      const waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
      return (await session.run(waiting)).length > 0;
    });
    assert.deepEqual(heard, []);
    return { added };
  });
  await later.added;
  await until('both', () => heard.length === 2);
  assert.deepEqual(heard, ['first', 'second']);
});

test('a store that was closed refuses at once', { skip }, async (t) => {
  const store = await openOn(t, await database.clearedDatabase());
  await store.close();
  let refusal: unknown;
  Promise.resolve(store.todos.find(randomUUID())).catch((error) => (refusal = codeOf(error)));
  for (const _ of times(9)) await nextTurn();
  assert.equal(refusal, 'unavailable');
});

test('a start warns of a database that may lose acknowledged writes', { skip }, async (t) => {
  const url = await database.createDatabase();
  const events: string[] = [];
  const log = (_level: string, event: string): number => events.push(event);
  await (await openOn(t, url, { log })).close();
  assert.deepEqual(events, []);
  const name = new URL(url).pathname.slice(1);
  await database.query(url, `ALTER DATABASE ${name} SET synchronous_commit = off`);
  await openOn(t, url, { log });
  assert.deepEqual(events, ['database may lose acknowledged writes']);
});

test('PostgreSQL is refused with one line where the package is missing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-bare-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const filter = (path: string): boolean => !/dist\/(?:graphql-ui|reference)$|\.d\.ts$/.test(path);
  await cp('dist', join(folder, 'dist'), { recursive: true, filter });
  await cp('package.json', join(folder, 'package.json'));
  // A package without files: none that lies in a folder above is found.
  await mkdir(join(folder, 'node_modules/pg'), { recursive: true });
  await writeFile(join(folder, 'node_modules/pg/package.json'), '{"exports":{}}');
  const bare = (await import(join(folder, 'dist/store/open.js'))) as {
    openStore: typeof OpenStore;
  };
  await assert.rejects(bare.openStore('postgres://127.0.0.1/x', driverOptions()), {
    message: 'STORE_URL: postgres:// needs one more package: npm install pg',
  });
});

const tlsSettings = 'sslmode=prefer sslmode=require sslmode=verify-full channel_binding=require';

test('a server without TLS is refused at once where TLS is required', { skip }, async () => {
  const url = await database.emptyDatabase();
  for (const parameter of tlsSettings.split(' ')) {
    const message = 'STORE_URL: The server does not support SSL connections';
    await assert.rejects(openStore(`${url}?${parameter}`, driverOptions()), { message }, parameter);
  }
});

const addresses = Object.values(networkInterfaces()).flat();
const skipIpv6 =
  skip || (!addresses.some((one) => one?.address === '::1') && 'there is no IPv6 on this machine');

test('a server is reached at an IPv6 address', { skip: skipIpv6 }, async (t) => {
  const url = await database.clearedDatabase();
  const store = await openOn(t, url.replace('@127.0.0.1:', '@[::1]:'));
  // One more connection listens for comments.
  store.comments.watch?.(() => undefined);
  await watching([store]);
  const connections = await database.query(
    url,
    `SELECT DISTINCT host(client_addr) AS address FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'inkwell'`,
  );
  assert.deepEqual(connections, [{ address: '::1' }]);
  await assert.rejects(
    openPostgresStore('postgres://[::1]:1/db', {
      ...driverOptions(),
      startSeconds: 0,
      mayCreate: true,
    }),
    /^Error: STORE_URL: the database at \[::1\]:1 does not answer: connect ECONNREFUSED/,
  );
});

for (const [url, message] of [
  ['postgres://h:x/db', /^STORE_URL: Invalid URL$/],
  ['postgres://u:p,q@a,b:1/db', /^STORE_URL: it names several hosts, and has to name one/],
  ['postgres://h/db?sslrootcert=/nothing/here', /^STORE_URL: ENOENT.*\/nothing\/here/],
] as const) {
  test(`${url} is refused`, async () => {
    await assert.rejects(openStore(url, driverOptions()), { message });
  });
}

test('comments and uploads wait for a commit that takes over a second', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const records = await openOn(t, url, { timeoutSeconds: 600 });
  const directory = await createDirectory(t);
  const { uploads } = await openDurable(records, t, { directory });
  await uploads.sweep();
  const post = await records.posts.create({ title: 'a', content: 'b', authorId: null });
  const session = openSession(t, url);
  const both = await session.begin(async () => {
    // As another node does it: both locks are held until the commit.
    await session`INSERT INTO inkwell.comments (id, post_id, content, created_at)
      VALUES (${randomUUID()}, ${post.id}, 'first', '2026-01-01T00:00:00')`;
    await session`SELECT pg_advisory_xact_lock(${0x49_6e_6b_66})`;
    const stored = Promise.all([
      records.comments.add(post.id, 'second'),
      storeFiles(uploads, { a: '1' }),
    ]);
    await until('two that wait for the commit', async () => {
      const waiting = await session`SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND NOT granted AND database = (
          SELECT oid FROM pg_database WHERE datname = current_database())`;
      return waiting.length === 2;
    });
    await session`SELECT pg_sleep(1.3)`;
    return { stored };
  });
  await both.stored;
  assert.equal((await listDurable(directory)).length, 1);
});
