/** Nodes whose database has no LISTEN, or never notifies: they poll. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { assertWhole, fanOut } from '../support/fan-out.js';
import { startNode } from '../support/program.js';
import { startPostgresProxy } from '../support/postgres-proxy.js';
import { skipPostgres as skip } from '../support/postgres.js';
import { database } from '../support/shared-postgres.js';
import { openOn } from '../support/stores.js';
import { watching } from '../support/watching.js';

describe('nodes on a PostgreSQL that does not notify', { skip, concurrency: true }, () => {
  for (const [listen, name] of [
    ['refuse', 'refuses LISTEN'],
    ['ignore', 'never notifies'],
  ] as const) {
    it(`hear every comment once and in order where it ${name}`, async (context) => {
      const proxy = await startPostgresProxy(context, await database.createDatabase(), { listen });
      const env = { STORE_URL: proxy.url, STORE_TIMEOUT_SECONDS: '2' };
      const nodes = await Promise.all([1, 2, 3].map(() => startNode(context, env)));
      const result = await fanOut({ nodes, subscribers: 6, comments: 250, writers: 6 });
      assertWhole(result);
      assert.ok(proxy.touched() > 0);
      for (const { logged } of nodes) {
        const warned = logged.filter(({ event }) => event === 'database sends no notifications');
        assert.equal(warned.length, listen === 'refuse' ? 1 : 0);
      }
      const [half = 0, most = 0] = [0.5, 0.99].map(
        (share) => result.delays[Math.floor(result.delays.length * share)],
      );
      context.diagnostic(`delays: p50 ${half.toFixed()} ms, p99 ${most.toFixed()} ms`);
      // Half of all waits are shorter than the time between two looks, by far where it is deaf.
      assert.ok(half < 2_000, `${half} ms`);
    });
  }

  it('hear of new comments where the database has lost the last ones', async (context) => {
    const direct = await database.createDatabase();
    const { url } = await startPostgresProxy(context, direct, { listen: 'refuse' });
    const lost: string[] = [];
    const [deaf, other] = await Promise.all(
      [url, direct].map(async (each) => {
        const log = (_level: string, event: string): void => {
          if (event === 'database has failed over') lost.push(each);
        };
        const store = await openOn(context, each, { log });
        const heard: string[] = [];
        store.comments.watch?.(({ content }) => heard.push(content));
        await watching([store]);
        return { store, heard };
      }),
    );
    assert.ok(deaf !== undefined && other !== undefined);
    const until = async (what: () => boolean): Promise<void> => {
      for (const end = Date.now() + 10_000; !what(); await pause(10)) assert.ok(Date.now() < end);
    };
    const { id } = await other.store.posts.create({ title: 'a', content: 'b', authorId: null });
    for (const text of ['1', '2', '3']) await other.store.comments.add(id, text);
    await until(() => deaf.heard.length === 3);
    // As after a failover to a copy that lagged behind.
    await database.query(
      direct,
      `DELETE FROM inkwell.comments WHERE content IN ('2', '3');
       SELECT setval('inkwell.comments_seq_seq', (SELECT max(seq) FROM inkwell.comments))`,
    );
    await until(() => lost.length === 2);
    for (const text of ['4', '5']) await other.store.comments.add(id, text);
    await until(() => [deaf, other].every(({ heard }) => heard.length === 5));
    for (const { heard } of [deaf, other]) assert.deepEqual(heard, ['1', '2', '3', '4', '5']);
  });
});
