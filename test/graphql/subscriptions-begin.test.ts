/** When a client can tell that its subscription runs, and with which event it begins. */

import assert from 'node:assert/strict';
import { before, describe, it, test, type TestContext } from 'node:test';
import type { Engine } from '../../dist/graphql/engine.js';
import { startEndpoint } from '../support/graphql-endpoint.ts';
import { gate } from '../support/http-kit.ts';
import { type PostgresServer, skipPostgres as skip } from '../support/postgres.ts';
import { openSession } from '../support/session.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { addPost, comment } from '../support/resuming.ts';
import { startServer } from '../support/server.ts';
import { askEvents } from '../support/sse-client.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';
import { until } from '../support/until.ts';

const query = 'subscription { commentAdded { content } }';

/** Settles with the sign that it runs. Gives back how to wait for the next event. */
type Subscribe = (context: TestContext, port: number) => Promise<() => Promise<unknown>>;

const overWebSocket: Subscribe = async (context, port) => {
  const client = await connectReady(port);
  context.after(() => client.close());
  client.send(subscribe('1', query));
  assert.equal((await client.ask(subscribe('2', '{ __typename }'))).id, '2');
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

  for (const [name, begin] of [
    ['a response on the same socket', overWebSocket],
    ['the head of its event stream', overEventStream],
  ] as const) {
    it(`hears of all that is stored on other nodes after ${name}`, async (t) => {
      const url = await server.emptyDatabase();
      const env = { STORE_URL: url };
      const [node, other] = await Promise.all([startServer(t, { env }), startServer(t, { env })]);
      const post = await addPost(other);
      const unlock = await lockComments(t, url);
      let isUnlocked = false;
      const running = begin(t, node.port).then((next) => {
        assert.ok(isUnlocked, 'it cannot run before it has read where the comments end');
        return next;
      });
      await until('a statement that waits for the lock', () => isWaitedFor(url));
      isUnlocked = true;
      await unlock();
      const next = await running;
      await comment(other, post, 'after the sign');
      assert.deepEqual(await next(), { data: { commentAdded: { content: 'after the sign' } } });
    });
  }
});

test('who joins while the post of an event is looked up gets the events from then on', async (t) => {
  const reader = { id: undefined, isAdmin: true, hasOwners: true, isModerated: false };
  const wrap = (engine: Engine) => ({ ...engine, hasOwners: true, readerOf: () => reader });
  const endpoint = await startEndpoint(t, { wrap });
  const first = await overWebSocket(t, endpoint.port);
  const [asked, answered] = [gate(), gate()];
  const { posts } = endpoint.store;
  const find = posts.find.bind(posts);
  t.mock.method(posts, 'find', async (id: string) => {
    asked.open();
    await answered.opened;
    return find(id);
  });
  endpoint.comment('one');
  await asked.opened;
  const late = await overWebSocket(t, endpoint.port);
  answered.open();
  const data = (content: string): object => ({ data: { commentAdded: { content } } });
  assert.deepEqual(await first(), data('one'));
  endpoint.comment('two');
  assert.deepEqual([await first(), await late()], [data('two'), data('two')]);
});
