/** The response cache on PostgreSQL: what anybody commits is seen by the next request. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { testAtLength } from '../support/long.ts';
import { catchUp, startPair } from '../support/postgres-pair.ts';
import { skipPostgres as skip, startPostgres } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';
import { until } from '../support/until.ts';

/** A node with one post, which GraphQL reads: its metrics tell what came from the cache. */
async function openNode(t: TestContext, url: string) {
  const node = await startServer(t, { env: { STORE_URL: url, ADMIN_PORT: '0' } });
  const { headers } = await node.send('POST', '/posts', { title: 'a', content: 'first' });
  const path = headers.get('location') ?? '';
  const id = path.split('/').at(-1);
  const readContent = async (): Promise<string> => {
    const response = await node.send('POST', '/graphql', {
      query: `{ postById(postId: "${id}") { content } }`,
    });
    assert.equal(response.status, 200);
    return ((await response.json()) as { data: { postById: { content: string } } }).data.postById
      .content;
  };
  /** The content, and whether the response came from the cache. */
  const read = async (): Promise<readonly [string, boolean]> => {
    const before = await node.metrics();
    const content = await readContent();
    return [content, cachedIn(await node.metrics()) > cachedIn(before)];
  };
  /** A question may be late where the machine is busy: then the response is made once more. */
  const keeps = (content: string): Promise<void> =>
    until('a response from the cache', async () => {
      const [found, isCached] = await read();
      assert.equal(found, content);
      return isCached;
    });
  return { node, path, read, readContent, keeps };
}

function cachedIn(metrics: string): number {
  return Number(/^inkwell_graphql_cached_responses_total\S* (\d+)/m.exec(metrics)?.[1] ?? 0);
}

const madeNow = false;
const rewrite = (content: string): string => `UPDATE inkwell.posts SET content = '${content}'`;

describe('the response cache on PostgreSQL', { skip }, () => {
  it('answers again while nothing is committed, and 304 for the same ETag', async (t) => {
    const { node, path, read, keeps } = await openNode(t, await database.clearedDatabase());
    assert.deepEqual(await read(), ['first', madeNow]);
    await keeps('first');
    const etag = (await node.fetch(path)).headers.get('etag') ?? '';
    const headers = { 'If-None-Match': etag };
    assert.equal((await node.fetch(path, { headers })).status, 304);
    assert.equal((await node.send('PUT', path, { title: 'a', content: 'own' })).status, 204);
    assert.equal((await node.fetch(path, { headers })).status, 200);
    assert.deepEqual(await read(), ['own', madeNow]);
    await keeps('own');
  });

  it('does not answer for what another program has committed', async (t) => {
    const url = await database.clearedDatabase();
    const { read, keeps } = await openNode(t, url);
    for (const content of ['second', 'third']) {
      await database.query(url, rewrite(content));
      assert.deepEqual(await read(), [content, madeNow]);
      await keeps(content);
    }
    await database.query(url, 'DELETE FROM inkwell.posts');
    await assert.rejects(read(), TypeError);
  });

  it('answers beside open transactions until one of them commits', async (t) => {
    const url = await database.clearedDatabase();
    const { read, keeps } = await openNode(t, url);
    const [first, second] = [openSession(t, url), openSession(t, url)];
    await first.run(`BEGIN; ${rewrite('of the first')}`);
    assert.deepEqual(await read(), ['first', madeNow]);
    await keeps('first');
    await second.run("BEGIN; INSERT INTO inkwell.counters VALUES ('another', 1)");
    await keeps('first');
    await second.run('COMMIT');
    assert.deepEqual(await read(), ['first', madeNow]);
    await first.run('COMMIT');
    assert.deepEqual(await read(), ['of the first', madeNow]);
    await keeps('of the first');
  });

  it('keeps nothing that was read before a commit which came meanwhile', async (t) => {
    const url = await database.clearedDatabase();
    const { readContent } = await openNode(t, url);
    const session = openSession(t, url);
    // The read waits for the lock after it was asked what is committed.
    await session.run('BEGIN; LOCK TABLE inkwell.posts IN ACCESS EXCLUSIVE MODE');
    const reading = readContent();
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
      AND query LIKE '%inkwell.posts%'`;
    await until('a read that waits', async () => (await database.query(url, waiting)).length > 0);
    await session.run(`${rewrite('meanwhile')}; COMMIT`);
    assert.equal(await reading, 'meanwhile');
    await database.query(url, rewrite('after it'));
    assert.equal(await readContent(), 'after it');
  });

  it('is not used where the server refuses the question, which the log says once', async (t) => {
    const url = await database.createDatabase();
    const name = new URL(url).pathname.slice(1);
    await database.query(
      url,
      `CREATE ROLE without_control LOGIN; ALTER DATABASE ${name} OWNER TO without_control;
       REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM PUBLIC`,
    );
    const { node, read } = await openNode(t, url.replace('inkwell@', 'without_control@'));
    for (let count = 0; count < 5; count += 1) assert.deepEqual(await read(), ['first', madeNow]);
    const logged = node.logged.filter(({ event }) => event === 'responses are not cached');
    assert.equal(logged.length, 1);
    assert.match(String(logged[0]?.['reason']), /permission denied .* pg_control_checkpoint/);
  });

  it('fails no read when its connections are lost', async (t) => {
    const url = await database.clearedDatabase();
    const { read } = await openNode(t, url);
    assert.deepEqual(await read(), ['first', madeNow]);
    await database.cutConnections();
    assert.equal((await read())[0], 'first');
    await database.query(url, rewrite('behind a cut'));
    assert.equal((await read())[0], 'behind a cut');
  });

  // Servers of their own take seconds to start.
  testAtLength('is not used on a server in recovery', async (t) => {
    const { url, primary, standby, database: name, leadToStandby } = await startPair(t);
    const { read, keeps } = await openNode(t, url);
    assert.deepEqual(await read(), ['first', madeNow]);
    await keeps('first');
    await catchUp(primary, standby);
    leadToStandby();
    await primary.cutConnections();
    for (const content of ['second', 'third']) {
      await primary.query(primary.url(name), rewrite(content));
      await catchUp(primary, standby);
      for (const _ of [1, 2]) assert.deepEqual(await read(), [content, madeNow]);
    }
  });

  testAtLength(
    'forgets what a crash has lost, although its transaction number is given again',
    async (t) => {
      const unflushed = ['fsync=off', 'autovacuum=off', 'synchronous_commit=off'];
      const server = await startPostgres([...unflushed, 'wal_writer_delay=10s']);
      t.after(() => server.remove());
      const url = await server.createDatabase();
      const { read, keeps } = await openNode(t, url);
      const ask = async (text: string): Promise<unknown> =>
        Object.values((await server.query(url, text))[0] ?? {})[0];
      await ask('CHECKPOINT');
      const writer = await ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
      process.kill(Number(writer), 'SIGSTOP');
      await ask(rewrite('lost'));
      assert.deepEqual(await read(), ['lost', madeNow]);
      await keeps('lost');
      const snapshot = await ask('SELECT pg_current_snapshot()::text');
      const startedAt = await ask('SELECT pg_postmaster_start_time()::text');
      process.kill(Number(writer), 'SIGKILL');
      const isBack = async (): Promise<boolean> =>
        ask(`${rewrite('kept')} WHERE content = 'first' RETURNING 1`).then(
          (changed) => changed === 1,
          () => false,
        );
      await until('the end of the recovery', isBack);
      assert.equal(await ask('SELECT pg_current_snapshot()::text'), snapshot);
      assert.equal(await ask('SELECT pg_postmaster_start_time()::text'), startedAt);
      assert.equal((await read())[0], 'kept');
    },
  );
});
