/** Commits that hang: a standby for which they wait is stopped, or a disk is slow. */

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createServer, sql } from '../../dist/store/postgres/client/connection.js';
import { Pool } from '../../dist/store/postgres/client/pool.js';
import { withCode } from '../support/errors.ts';
import { times } from '../support/lists.ts';
import { rounds } from '../support/long.ts';
import { skipPostgres as skip, startPostgres } from '../support/postgres.ts';
import { startStandby } from '../support/postgres-pair.ts';
import { endTogether, startFront } from '../support/postgres-proxy.ts';
import { startNode } from '../support/program.ts';
import { database } from '../support/shared-postgres.ts';
import { openSession } from '../support/session.ts';
import { until } from '../support/until.ts';

const unavailable = withCode('unavailable');

/** How long the standby is stopped. */
const seconds = rounds('STANDBY_SECONDS', { short: 20, long: 30 });

/** A primary with fifty connections whose commits wait for a standby; a role without privileges. */
async function startSynchronous(t: TestContext) {
  const primary = await startPostgres(['fsync=off', 'autovacuum=off', 'max_connections=50']);
  t.after(() => primary.remove());
  const standby = await startStandby(primary);
  t.after(async () => {
    await standby.signal('SIGCONT');
    await standby.remove();
  });
  const admin = primary.url('postgres');
  const url = new URL(await primary.createDatabase());
  await primary.query(admin, 'CREATE ROLE serving LOGIN');
  await primary.query(admin, `ALTER DATABASE ${url.pathname.slice(1)} OWNER TO serving`);
  await primary.query(admin, "ALTER SYSTEM SET synchronous_standby_names = '*'");
  await primary.query(admin, 'SELECT pg_reload_conf()');
  url.username = 'serving';
  return { primary, standby, admin, url: url.href };
}

/** Three nodes, and clients that read and write until it is over; statuses by what was asked. */
async function startLoad(t: TestContext, url: string) {
  const nodes = await Promise.all(
    times(3).map((at) => startNode(t, { STORE_URL: `${url}?application_name=node-${at}` })),
  );
  const [reads, writes] = [new Set<number>(), new Set<number>()];
  /** `storedAt`: when a write was acknowledged first, since this was reset. */
  const state = { isOver: false, storedAt: undefined as number | undefined };
  const ask = async (at: number, statuses: Set<number>, init?: RequestInit): Promise<void> => {
    while (!state.isOver) {
      const response = await fetch(`${nodes[at % 3]?.url}/posts?limit=5`, init);
      await response.arrayBuffer();
      statuses.add(response.status);
      if (init !== undefined && response.ok) state.storedAt ??= performance.now();
    }
  };
  const headers = { 'Content-Type': 'application/json' };
  const creation = { method: 'POST', headers, body: '{"title":"a","content":"b"}' };
  const run = () =>
    Promise.all([
      ...times(12).map((at) => ask(at, reads)),
      ...times(24).map((at) => ask(at, writes, creation)),
    ]);
  return { reads, writes, state, run };
}

describe('commits that hang', { skip }, () => {
  it('hold up no reads of three nodes, and take no connections of others', async (t) => {
    const { primary, standby, admin, url } = await startSynchronous(t);
    const { reads, writes, run, state } = await startLoad(t, url);
    await standby.signal('SIGSTOP');
    const running = run();
    const session = openSession(t, admin);
    const end = performance.now() + seconds * 1000;
    let backends = 0;
    while (performance.now() < end) {
      const found = await session<{ count: number }>`SELECT count(*)::int FROM pg_stat_activity
        WHERE application_name LIKE 'node-%' GROUP BY application_name`;
      backends = Math.max(backends, ...found.map(({ count }) => count));
      await pause(100);
    }
    const stopped = [...writes];
    const continuedAt = performance.now();
    state.storedAt = undefined;
    await standby.signal('SIGCONT');
    await until('the stored comment', () => state.storedAt !== undefined);
    state.isOver = true;
    await running;
    const firstWrite = (state.storedAt ?? Infinity) - continuedAt;
    t.diagnostic(`backends of a node at most ${backends}; first write after ${firstWrite} ms`);
    assert.deepEqual([...reads], [200]);
    assert.deepEqual(stopped, [503]);
    // Ten, and that for LISTEN.
    assert.ok(backends <= 11, String(backends));
    assert.ok(firstWrite < 1_000, String(firstWrite));
    // The primary lacks no connections for others.
    assert.equal((await primary.query(admin, 'SELECT 1 AS one')).length, 1);
  });

  it('keep their connection; one that leads nowhere is replaced', async (t) => {
    const url = new URL(await database.createDatabase());
    const port = Number(url.port);
    let last: readonly [Socket, Socket] | undefined;
    url.host = await startFront(t, (near) => {
      const far = connect(port, '127.0.0.1');
      endTogether(near, far);
      near.on('data', () => (last = [near, far])).pipe(far);
      far.pipe(near);
    });
    const options = { log: () => undefined, connectionsMax: 2, timeoutSeconds: 1 };
    const pool = new Pool(await createServer(url.href), options);
    t.after(() => pool.close());
    const insert = async (n: number): Promise<unknown> =>
      pool.write(sql`INSERT INTO made VALUES (${n})`);
    const made = async (): Promise<readonly unknown[]> =>
      (await pool.read(sql`SELECT n FROM made ORDER BY n`)).map(({ n }) => Number(n));
    // The commit of 1 waits as long as the gate is there, and no time limit ends it.
    await database.query(
      url.href,
      `CREATE TABLE gate AS SELECT true; CREATE TABLE made (n int);
       CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         WHILE new.n = 1 AND EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP;
         RETURN new; END $$;
       CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON made DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION wait()`,
    );
    const since = performance.now();
    await assert.rejects(insert(1), unavailable);
    // The only one that may write is under way for longer than a connection may be silent.
    while (performance.now() - since < 5_000) {
      await assert.rejects(insert(2), unavailable);
      assert.deepEqual(await made(), []);
    }
    await database.query(url.href, 'DELETE FROM gate');
    await until('the first row', async () => (await made()).length === 1);
    await insert(3);
    const ofWrites = last;
    assert.deepEqual(await made(), [1, 3]);
    ofWrites?.[0].unpipe(ofWrites[1]);
    await assert.rejects(insert(4), unavailable);
    assert.deepEqual(await made(), [1, 3]);
    await until('an insert that succeeds', () => insert(5).then(() => true, unavailable));
    assert.deepEqual(await made(), [1, 3, 5]);
  });
});
