/** Nodes whose database has no LISTEN, or never notifies: they poll. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertWhole, fanOut } from '../support/fan-out.ts';
import { startNode } from '../support/program.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';

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
        assert.equal(warned.length, listen === 'refuse' ? 1 : 0, JSON.stringify(logged));
      }
      const [half = 0, most = 0] = [0.5, 0.99].map(
        (share) => result.delays[Math.floor(result.delays.length * share)],
      );
      context.diagnostic(`delays: p50 ${half.toFixed()} ms, p99 ${most.toFixed()} ms`);
      // Half of all waits are shorter than the time between two polls, by far where it is deaf.
      assert.ok(half < 2_000, `${half} ms`);
    });
  }
});
