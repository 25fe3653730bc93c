/** What the connections to PostgreSQL promise whoever asks, against a server of its own. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it, test, type TestContext } from 'node:test';
import { setImmediate as nextIteration, setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { createLoader } from '../../dist/store/postgres/batch.js';
import { createServer, sql } from '../../dist/store/postgres/client/connection.js';
import { Pool } from '../../dist/store/postgres/client/pool.js';
import type { Store } from '../../dist/store/store.js';
import { withCode } from '../support/errors.ts';
import { gate } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { endTogether, startFront } from '../support/postgres-proxy.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';
import { openOn } from '../support/stores.ts';

const unavailable = withCode('unavailable');
const options = { log: () => undefined, connectionsMax: 2, timeoutSeconds: 60 };

/** A pool behind a front that cuts a connection when a statement with this text comes. */
async function openBehind(t: TestContext, text: string) {
  const direct = await database.emptyDatabase();
  const { hostname, port } = new URL(direct);
  const state = { seen: 0, cutsLeft: 0 };
  const url = new URL(direct);
  url.host = await startFront(t, (near) => {
    const far = connect(Number(port), hostname);
    endTogether(near, far);
    far.pipe(near);
    near.on('data', (bytes: Buffer) => {
      if (bytes.includes(text)) state.seen += 1;
      if (!bytes.includes(text) || state.cutsLeft === 0) return void far.write(bytes);
      state.cutsLeft -= 1;
      return void near.destroy();
    });
  });
  const pool = new Pool(await createServer(url.href), options);
  t.after(() => pool.close());
  return { pool, state, direct };
}

test('a statement is timed in milliseconds', { skip }, async (t) => {
  const took: [string, number][] = [];
  const timed = (kind: string, milliseconds: number): void => void took.push([kind, milliseconds]);
  const server = await createServer(await database.emptyDatabase());
  const pool = new Pool(server, { ...options, timed });
  t.after(() => pool.close());
  await pool.read(sql`SELECT pg_sleep(0.1)`);
  const [[kind, milliseconds] = ['', 0]] = took;
  assert.equal(kind, 'read');
  // More where the machine is busy.
  assert.ok(milliseconds > 99, `${milliseconds} ms`);
});

describe('connections to PostgreSQL', { skip }, () => {
  it('that are lost in a read are replaced once, in a write never', async (t) => {
    const { pool, state, direct } = await openBehind(t, 'made');
    await database.query(direct, 'CREATE TABLE made AS SELECT 1 AS n');
    state.cutsLeft = 1;
    assert.deepEqual(await pool.read(sql`SELECT n FROM made`), [{ n: '1' }]);
    assert.equal(state.seen, 2);
    state.cutsLeft = 2;
    await assert.rejects(pool.read(sql`SELECT n AS m FROM made`), unavailable);
    assert.equal(state.seen, 4);
    state.cutsLeft = 1;
    await assert.rejects(pool.write(sql`INSERT INTO made VALUES (2)`), unavailable);
    assert.equal(state.seen, 5);
    assert.deepEqual(await pool.read(sql`SELECT count(*) FROM made`), [{ count: '1' }]);
  });

  it('are kept after an error of the server, also inside a transaction', async (t) => {
    const pool = new Pool(await createServer(await database.emptyDatabase()), options);
    t.after(() => pool.close());
    const pid = async (): Promise<unknown> => (await pool.write(sql`SELECT pg_backend_pid()`))[0];
    const first = await pid();
    await assert.rejects(pool.write(sql`SELECT 1 / 0`), /division by zero/);
    const fault = new Error('of the work');
    const failing = pool.transaction(async (ask) => {
      await ask(sql`CREATE TABLE undone ()`);
      throw fault;
    });
    await assert.rejects(failing, fault);
    const broken = pool.transaction(async (ask) => {
      await ask(sql`CREATE TABLE undone ()`);
      await ask(sql`SELECT 1 / 0`);
    });
    await assert.rejects(broken, /division by zero/);
    assert.deepEqual(await pool.read(sql`SELECT to_regclass('undone')`), [{ to_regclass: null }]);
    assert.deepEqual(await pid(), first);
  });

  it('are waited for by 2,000 reads and 2,000 writes; one more is refused', async (t) => {
    const url = await database.emptyDatabase();
    const pool = new Pool(await createServer(url), options);
    t.after(() => pool.close());
    const session = openSession(t, url);
    await session`SELECT pg_advisory_lock(1)`;
    const wait = sql`SELECT pg_advisory_xact_lock(1)`;
    const ask = { read: () => pool.read(wait), write: () => pool.write(wait) };
    const refused = { read: 0, write: 0 };
    const waiting = (['read', 'write'] as const).flatMap((kind) =>
      times(2_002).map(() => ask[kind]().catch(() => void (refused[kind] += 1))),
    );
    // Those that are refused do not wait for the others.
    await new Promise(setImmediate);
    assert.deepEqual(refused, { read: 1, write: 1 });
    await session`SELECT pg_advisory_unlock(1)`;
    await Promise.all(waiting);
    assert.deepEqual(refused, { read: 1, write: 1 });
  });

  for (const [bound, change] of [
    [1_000, ({ articles }: Store) => articles.change(1, (article) => article)],
    [101, ({ articles }: Store) => articles.changeAll((all) => all)],
  ] as const) {
    it(`have ${bound} changes of articles wait; one more is refused`, async (t) => {
      const store = await openOn(t, await database.clearedDatabase());
      const changes = times(bound + 1).map(async () => change(store));
      const atOnce = changes.map(async (each) =>
        Promise.race([each.then(() => 'changed', codeOf), nextIteration('waits')]),
      );
      const found = await Promise.all(atOnce);
      assert.equal(found.indexOf('overloaded'), bound);
      // On a slow machine some of them wait longer than a change may.
      await Promise.allSettled(changes);
    });
  }

  it('are closed after five minutes, so that idle ones end', async (t) => {
    const url = await database.emptyDatabase();
    const pool = new Pool(await createServer(url), options);
    t.after(() => pool.close());
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const own = sql`SELECT pg_backend_pid() AS pid`;
    const first = await pool.read(own);
    t.mock.timers.tick(299_999);
    assert.deepEqual(await pool.read(own), first);
    t.mock.timers.tick(1);
    assert.notDeepEqual(await pool.read(own), first);
  });
});

test('a thousand groups of items wait, the items of one more are refused', async () => {
  const opened = gate();
  const ask = createLoader<string, string>({
    costMax: 1,
    costOf: () => 1,
    async loadMany(items) {
      await opened.opened;
      return items;
    },
    loadOne: (item) => Promise.resolve(item),
  });
  const all = times(1_002).map((at) => ask(`${at}`));
  const more = ask('more').then(() => 'taken', codeOf);
  assert.equal(await Promise.race([more, pause(1_000, 'waits')]), 'overloaded');
  opened.open();
  assert.equal((await Promise.all(all)).length, 1_002);
});
