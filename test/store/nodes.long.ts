/** Several server processes on one PostgreSQL, also while one of them or the database is away. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Asked, assertWhole, fanOut } from '../support/fan-out.ts';
import { pluck, times } from '../support/lists.ts';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { type NodeProcess, startNode } from '../support/program.ts';
import { database } from '../support/shared-postgres.ts';

type Act = (server: PostgresServer) => Promise<void>;

const load = { subscribers: 6, comments: 400, writers: 6 };

/** With a server of their own: these tests mostly wait, and do so at the same time. */
async function startNodes(
  context: TestContext,
  count: number,
  timeoutSeconds = 2,
): Promise<{ server: PostgresServer; url: string; nodes: readonly NodeProcess[] }> {
  const server = await startPostgres();
  context.after(() => server.remove());
  const url = await server.createDatabase();
  const env = { STORE_URL: url, STORE_TIMEOUT_SECONDS: String(timeoutSeconds) };
  const nodes = await Promise.all(times(count).map(() => startNode(context, env)));
  return { server, url, nodes };
}

describe('nodes on one PostgreSQL under load', { skip, concurrency: true }, () => {
  it('go on while one of them stands still for 5 s, and it catches up', async (context) => {
    const { server, url, nodes } = await startNodes(context, 3);
    const still = 1;
    const held: unknown[] = [];
    const disturb = async (): Promise<void> => {
      await nodes[still]?.signal('SIGSTOP');
      const end = Date.now() + 5_000;
      while (Date.now() < end) {
        held.push(...(await server.query(url, heldStatement)));
        await pause(100);
      }
      await nodes[still]?.signal('SIGCONT');
    };
    const result = await fanOut({ nodes, ...load, disturb });
    assertWhole(result);
    assert.deepEqual(held, []);
    const { from, to } = result.disturbed;
    const others = result.asked.filter(
      ({ node, began, ended }) => node !== still && began > from && ended < to,
    );
    // The others refuse nothing meanwhile, and what they take reaches their subscribers.
    assert.deepEqual(new Set(others.map(({ status }) => status)), new Set([201]));
    assert.ok(others.length > 0);
    const early = others.filter(({ ended }) => ended < from + 2_500).length;
    for (const [at, arrivals] of result.arrivals.entries()) {
      const meanwhile = arrivals.filter((when) => when > from && when < to).length;
      if (at % nodes.length !== still) assert.ok(meanwhile >= early, `${meanwhile} of ${early}`);
    }
    context.diagnostic(`${others.length} comments on the other nodes meanwhile`);
  });

  const outages = [
    ['says nothing', (server) => server.signal('SIGSTOP'), (server) => server.signal('SIGCONT')],
    ['is stopped', (server) => server.stop('SIGINT'), (server) => server.start()],
    ['has crashed', (server) => server.stop('SIGQUIT'), (server) => server.start()],
  ] as const satisfies readonly (readonly [string, Act, Act])[];
  for (const [name, begin, end] of outages) {
    it(`lose nothing while PostgreSQL ${name} for 3 s, and go on`, async (context) => {
      const { server, nodes } = await startNodes(context, 2, 1);
      const disturb = async (): Promise<void> => {
        await begin(server);
        await pause(3_000);
        await end(server);
      };
      const result = await fanOut({ nodes, ...load, disturb });
      assertWhole(result);
      const refused = result.asked.filter(({ status }) => status !== 201);
      assert.ok(refused.length > 0);
      for (const { status, retryAfter, began, ended } of refused) {
        assert.equal(status, 503, `${status}`);
        assert.ok(retryAfter >= 1 && retryAfter <= 5, `Retry-After: ${retryAfter}`);
        const most = name === 'says nothing' ? 6_000 : 5_000;
        assert.ok(ended - began < most, `${ended - began} ms`);
      }
      const longest = Math.max(...refused.map(({ began, ended }) => ended - began));
      context.diagnostic(`${refused.length} refused, the longest after ${longest.toFixed()} ms`);
      const back = firstAfter(result.asked, result.disturbed.to);
      context.diagnostic(`back ${back.toFixed()} ms later`);
      assert.ok(back < 5_000, `${back} ms`);
    });
  }

  for (const [listen, name] of [
    ['refuse', 'refuses LISTEN'],
    ['ignore', 'never notifies'],
  ] as const) {
    it(`hear every comment once and in order where PostgreSQL ${name}`, async (context) => {
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

/** Transactions of clients that have written something and are not over within a second. */
const heldStatement = `SELECT state, query FROM pg_stat_activity
  WHERE datname = current_database() AND backend_type = 'client backend'
    AND backend_xid IS NOT NULL AND xact_start < clock_timestamp() - interval '1 second'`;

/** How long after that moment the first comment was acknowledged. */
function firstAfter(asked: readonly Asked[], moment: number): number {
  const later = asked.filter(({ id, ended }) => id !== undefined && ended > moment);
  return Math.min(...pluck(later, 'ended')) - moment;
}
