/** The store on PostgreSQL behind PgBouncer, with fewer connections than the nodes have. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { allOf, pluck, times } from '../support/lists.ts';
import { skipPgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { skipPostgres } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { driverOptions } from '../support/driver-options.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { watching } from '../support/watching.ts';

interface Pooled {
  readonly url: string;
  readonly listenUrl?: string;
}

/** Resolves with the texts of comments that a node tells of, once there are so many. */
function hear(node: Store, count: number): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const heard: string[] = [];
    node.comments.watch(({ comment: { content } }) => {
      if (heard.push(content) === count) resolve(heard);
    });
  });
}

describe('behind PgBouncer', { skip: skipPostgres || skipPgBouncer }, () => {
  const session = {
    pool_mode: 'session',
    ignore_startup_parameters: 'statement_timeout,lock_timeout',
    default_pool_size: 40,
  };
  const transaction = { pool_mode: 'transaction', default_pool_size: 3 };

  it('in session mode, a start says what the pooler has to be told', async (t) => {
    const { ignore_startup_parameters: _, ...others } = session;
    const url = await startPgBouncer(t, await database.createDatabase(), others);
    await assert.rejects(openStore(url, driverOptions()), {
      message:
        'STORE_URL: the pooler says "unsupported startup parameter: statement_timeout". Set ' +
        'ignore_startup_parameters to statement_timeout,lock_timeout there, or add ?prepare=false ' +
        'to the URL.',
    });
  });

  it('in statement mode, a start is refused', async (t) => {
    const settings = { ...session, pool_mode: 'statement' };
    const url = await startPgBouncer(t, await database.createDatabase(), settings);
    for (const parameters of ['', '?prepare=false']) {
      await assert.rejects(openStore(`${url}${parameters}`, driverOptions()), {
        message:
          'STORE_URL: the pooler says "transaction blocks not allowed in statement pooling mode". ' +
          'Its pool_mode has to be session or transaction.',
      });
    }
  });

  it('in transaction mode that the URL does not tell of, requests succeed, and the log says it once', async (t) => {
    const settings = { ...session, ...transaction, default_pool_size: 10 };
    const url = await startPgBouncer(t, await database.createDatabase(), settings);
    const lines: unknown[] = [];
    const log = (_level: string, event: string, facts?: object): number =>
      lines.push({ event, ...facts });
    const store = await openOn(t, url, { log });
    await Promise.all(
      times(200).map(async (at) => {
        const { id } = await store.posts.create({ title: 'a', content: 'b', authorId: null });
        assert.ok(await store.comments.add(id, `comment ${at}`));
        assert.equal((await store.posts.find(id))?.title, 'a');
        await store.todos.create({ title: `todo ${at}`, completed: false });
      }),
    );
    const advice = 'STORE_URL should have ?prepare=false';
    assert.deepEqual(lines, [{ event: 'database pooler in transaction mode', advice }]);
  });

  type Start = (t: TestContext, url: string) => Promise<Pooled>;
  const inSession: Start = async (t, url) => ({ url: await startPgBouncer(t, url, session) });
  const inTransaction: Start = async (t, url) => {
    return { url: `${await startPgBouncer(t, url, transaction)}?pgbouncer=true` };
  };
  const past: Start = async (t, url) => ({ ...(await inTransaction(t, url)), listenUrl: url });
  for (const [name, listening, start] of [
    ['in session mode', 2, inSession],
    ['in transaction mode', 0, inTransaction],
    ['in transaction mode, listening past it', 2, past],
  ] as const) {
    it(`${name}, what is stored is found, and every node tells of it once`, async (t) => {
      const direct = await database.createDatabase();
      const { url, listenUrl = '' } = await start(t, direct);
      const nodes = [
        await openOn(t, url, { listenUrl }),
        await openOn(t, url, { listenUrl }),
      ] as const;
      const [first, second] = nodes;
      const { id } = await first.posts.create({ title: 'a', content: 'b', authorId: null });
      const count = 60;
      const heard = nodes.map((node) => hear(node, count));
      await watching(nodes);
      const listeners = `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN %'`;
      const found = async () => database.query(direct, listeners);
      await until('the listeners', async () => (await found()).length === listening);
      await Promise.all(
        times(count).map(async (at) => {
          const node = nodes[at % 2] ?? first;
          assert.ok(await node.comments.add(id, `comment ${at}`));
          assert.equal((await node.posts.find(id))?.title, 'a');
          const todo = await node.todos.create({ title: `todo ${at}`, completed: false });
          assert.equal((await second.todos.find(todo.id))?.title, `todo ${at}`);
        }),
      );
      const stored = pluck(await allOf(first.comments.ofPost(id)), 'content');
      assert.equal(stored.length, count);
      assert.deepEqual(await Promise.all(heard), [stored, stored]);
    });
  }
});
