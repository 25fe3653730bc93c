/** What is cached where the names of transactions tell less: on a standby, and after a crash. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { skipPostgres as skip, startPostgres } from '../support/postgres.ts';
import { catchUp, startPair } from '../support/postgres-pair.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { until } from '../support/until.ts';

/** Creates a post. Returns its path. */
async function createPost(server: TestServer): Promise<string> {
  const created = await server.send('POST', '/posts', { title: 'before', content: 'c' });
  return created.headers.get('location') ?? '';
}

/** Undefined while the database is away. */
async function titleOf(server: TestServer, path: string): Promise<string | undefined> {
  const response = await server.fetch(path);
  const { title } = (await response.json()) as { title?: string };
  return title;
}

const sleeping = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

describe('a cached response', { skip }, () => {
  it('of a standby does not outlive what it replays', async (t) => {
    const { primary, standby, url, database, leadToStandby } = await startPair(t);
    const server = await startServer(t, { env: { STORE_URL: url } });
    const path = await createPost(server);
    const write = primary.url(database);
    const sessions = [openSession(t, write), openSession(t, write)] as const;
    const [open, changing] = sessions;
    for (const session of sessions) await session`BEGIN`;
    await open`SELECT pg_current_xact_id()`;
    await changing`UPDATE inkwell.posts SET title = 'after' WHERE id = ${path.slice(7)}`;
    await primary.query(write, "UPDATE inkwell.todos SET title = 'other'");
    await catchUp(primary, standby);
    leadToStandby();
    await primary.query(
      primary.url('postgres'),
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'inkwell'",
    );
    await until('the title from before', async () => (await titleOf(server, path)) === 'before');
    assert.equal(await titleOf(server, path), 'before');
    await changing`COMMIT`;
    await catchUp(primary, standby);
    assert.equal(await titleOf(server, path), 'after');
  });

  it('does not outlive a commit that a crash has lost', async (t) => {
    const settings = ['fsync=off', 'autovacuum=off', 'wal_writer_delay=10s'];
    const postgres = await startPostgres(settings);
    t.after(() => postgres.remove());
    const url = await postgres.createDatabase();
    const server = await startServer(t, { env: { STORE_URL: url } });
    const path = await createPost(server);
    assert.equal(await titleOf(server, path), 'before');
    const session = openSession(t, url);
    const [backend] = await session<{ pid: number }>`SELECT pg_backend_pid() AS pid`;
    await session`SET synchronous_commit = off`;
    await session`UPDATE inkwell.posts SET title = 'lost' WHERE id = ${path.slice(7)}`;
    assert.equal(await titleOf(server, path), 'lost');
    const crashed = assert.rejects(openSession(t, url)`SELECT pg_sleep(600)`);
    await until(
      'a statement that sleeps',
      async () => (await postgres.query(url, sleeping)).length === 1,
    );
    process.kill(backend?.pid ?? 0, 'SIGKILL');
    await crashed;
    // The next transaction gets the number of the lost one.
    const other = "UPDATE inkwell.todos SET title = 'other'";
    await until('a transaction that succeeds', () =>
      postgres.query(url, other).then(
        () => true,
        () => false,
      ),
    );
    await until('a title', async () => (await titleOf(server, path)) !== undefined);
    assert.equal(await titleOf(server, path), 'before');
  });
});
