import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import postgres from 'postgres';
import { openStore } from '../../dist/store/open.js';
import { createServer, sql } from '../../dist/store/postgres/connection.js';
import { Pool } from '../../dist/store/postgres/pool.js';
import { codeOf } from '../../dist/errors.js';
import { withCode } from '../support/errors.js';
import { allOf } from '../support/lists.js';
import { driverOptions } from './driver-suite.js';
import { startServer } from '../support/server.js';
import { type PostgresServer, skipPostgres as skip } from '../support/postgres.js';
import { sharePostgres } from '../support/shared-postgres.js';
import { changing, valueOf } from '../support/article-texts.js';

let server: PostgresServer;
before(async () => {
  if (skip === false) server = await sharePostgres();
});

test('statements end in time although the clock is set back', { skip }, async (t) => {
  const one = await createServer(await server.createDatabase());
  const options = { log: () => undefined, connectionsMax: 1, timeoutSeconds: 1 };
  const pool = new Pool(one, options);
  t.after(() => pool.close());
  const past = Date.now() - 3_600_000;
  t.mock.method(Date, 'now', () => past);
  const slow = [1, 2, 3, 4].map(() => pool.read(sql`SELECT pg_sleep(5)`));
  // The server ends the first; the last is given up while it waits for the connection.
  const [first, , , last] = await Promise.allSettled(slow);
  const reasons = [first, last].map((end) => end?.status === 'rejected' && codeOf(end.reason));
  assert.deepEqual(reasons, ['overloaded', 'unavailable']);
  const [row] = await pool.read(sql`SELECT 7 AS n`);
  assert.equal(row?.['n'], 7);
});

test('a locked table holds up the lists of this table, and nothing else', { skip }, async (t) => {
  const url = await server.createDatabase();
  const limits = { STORE_TIMEOUT_SECONDS: '600', IDLE_TIMEOUT_SECONDS: '600' };
  const service = await startServer(t, { env: { STORE_URL: url, ...limits } });
  const session = postgres(url, { max: 1, onnotice: () => undefined });
  t.after(() => session.end({ timeout: 1 }));
  await session.begin(async (lock) => {
    await lock`LOCK TABLE inkwell.todos IN ACCESS EXCLUSIVE MODE`;
    const ask = async (path: string): Promise<number> => (await service.fetch(path)).status;
    const seen = { isOver: false, waitingMost: 0 };
    const lists = Promise.all(Array.from({ length: 30 }, () => ask('/api/todos'))).finally(
      () => (seen.isOver = true),
    );
    const others = ['/posts', '/api/articles', '/api/articles/1', '/posts'].map(ask);
    assert.deepEqual(await Promise.all(others), [200, 200, 200, 200]);
    while (!seen.isOver) {
      const [{ waiting } = {}] = await lock`SELECT count(*)::int AS waiting FROM pg_locks
        WHERE relation = 'inkwell.todos'::regclass AND NOT granted`;
      await pause(10);
      seen.waitingMost = Math.max(seen.waitingMost, Number(waiting));
    }
    assert.deepEqual(new Set(await lists), new Set([503]));
  });
  assert.equal((await service.fetch('/api/todos')).status, 200);
  assert.ok(!service.logged.some(({ event }) => event === 'database is away'));
});

test('a change of an article does not wait for one of another article', { skip }, async (t) => {
  const url = await server.createDatabase();
  const store = await openStore(url, driverOptions());
  t.after(() => store.close());
  const session = postgres(url, { max: 1, onnotice: () => undefined });
  t.after(() => session.end({ timeout: 1 }));
  await session.begin(async (lock) => {
    await lock`SELECT FROM inkwell.articles WHERE id = 1 FOR UPDATE`;
    const locked = Promise.resolve(
      store.articles.change(
        1,
        changing((found) => ({ ...found, title: 'a' })),
      ),
    );
    const refused = assert.rejects(locked, withCode('overloaded'));
    await store.articles.change(
      2,
      changing((found) => ({ ...found, title: 'b' })),
    );
    assert.equal(valueOf(await store.articles.find(2))?.title, 'b');
    await refused;
  });
  assert.equal((await allOf(store.articles.all)).length, 2);
});
