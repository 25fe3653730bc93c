/** When a client can tell that its subscription runs, on a node that has had none before. */

import assert from 'node:assert/strict';
import { before, describe, it, type TestContext } from 'node:test';
import { type PostgresServer, skipPostgres as skip } from '../support/postgres.ts';
import { openSession } from '../support/session.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { askEvents } from '../support/sse-client.ts';
import { connectReady } from '../support/ws-clients.ts';
import { until } from '../support/until.ts';

const query = 'subscription { commentAdded { content } }';

/** Settles with the sign that it runs. Gives back how to wait for the next event. */
type Subscribe = (context: TestContext, port: number) => Promise<() => Promise<unknown>>;

const overWebSocket: Subscribe = async (context, port) => {
  const client = await connectReady(port);
  context.after(() => client.close());
  client.send({ id: '1', type: 'subscribe', payload: { query } });
  client.send({ id: '2', type: 'subscribe', payload: { query: '{ __typename }' } });
  const payload = { data: { __typename: 'Query' } };
  assert.deepEqual(await client.next(), { id: '2', type: 'next', payload });
  assert.deepEqual(await client.next(), { id: '2', type: 'complete' });
  return async () => (await client.next()).payload;
};

const overEventStream: Subscribe = async (context, port) => {
  const events = await askEvents({ port }, query);
  context.after(() => events.leave());
  assert.equal(await events.next(), ':');
  return async () =>
    JSON.parse(String(await events.next()).replace(/^id: .*\nevent: next\ndata: /, ''));
};

describe('a subscription on a node that rests', { skip }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await sharePostgres();
  });

  /** Nobody can read or write comments until it is left. */
  async function lockComments(context: TestContext, url: string): Promise<() => Promise<unknown>> {
    const session = openSession(context, url);
    await session`BEGIN`;
    await session`LOCK TABLE inkwell.comments`;
    return () => session`COMMIT`;
  }

  async function isWaitedFor(url: string): Promise<boolean> {
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
      AND datname = current_database()`;
    return (await server.query(url, waiting)).length > 0;
  }

  async function createPost({ fetch }: TestServer): Promise<string> {
    const body = JSON.stringify({ title: 'a', content: 'b' });
    const headers = { 'Content-Type': 'application/json' };
    const { headers: answered } = await fetch('/posts', { method: 'POST', headers, body });
    return String(answered.get('location'));
  }

  for (const [name, subscribe] of [
    ['a response on the same socket', overWebSocket],
    ['the head of its event stream', overEventStream],
  ] as const) {
    it(`hears of all that is stored on other nodes after ${name}`, async (t) => {
      const url = await server.createDatabase();
      const env = { STORE_URL: url };
      const [node, other] = await Promise.all([startServer(t, { env }), startServer(t, { env })]);
      const post = await createPost(other);
      const unlock = await lockComments(t, url);
      let isUnlocked = false;
      const running = subscribe(t, node.port).then((next) => {
        assert.ok(isUnlocked, 'it cannot run before it has read where the comments end');
        return next;
      });
      await until('a statement that waits for the lock', () => isWaitedFor(url));
      isUnlocked = true;
      await unlock();
      const next = await running;
      const body = JSON.stringify({ content: 'after the sign' });
      const headers = { 'Content-Type': 'application/json' };
      await other.fetch(`${post}/comments`, { method: 'POST', headers, body });
      assert.deepEqual(await next(), { data: { commentAdded: { content: 'after the sign' } } });
    });
  }
});
