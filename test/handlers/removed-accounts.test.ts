/** The subscriptions of an account end with it, or with its password, and follow its roles. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { runCommandHere } from '../support/command.ts';
import { logIn } from '../support/login.ts';
import { openSession } from '../support/session.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { askEvents, completeEvent, nextEvent } from '../support/sse-client.ts';
import { durableStores, onPostgres } from '../support/stores.ts';
import { connectByHand, type HandClient, subscribe } from '../support/ws-clients.ts';

const query = 'subscription { commentAdded { id } }';
const passwords = { old: 'a jar of black ink', new: 'a jar of blue blots' };
const ended = nextEvent({
  errors: [
    {
      message: 'The account was removed, or its password was changed.',
      extensions: { code: 'UNAUTHENTICATED' },
    },
  ],
});

/** What comes of it, or that nothing does. */
const soon = <T>(promise: Promise<T>): Promise<T | string> =>
  Promise.race([promise, pause(5_000, 'nothing came', { ref: false })]);

async function connect(to: TestServer, token: string, legacy = false): Promise<HandClient> {
  const client = await connectByHand(to.port, {
    protocols: legacy ? [] : ['graphql-transport-ws'],
  });
  const payload = { Authorization: `Bearer ${token}` };
  const acknowledged = await client.ask({ type: 'connection_init', payload });
  assert.equal(acknowledged.type, 'connection_ack');
  client.send(subscribe('s', query));
  client.send(subscribe('t', query));
  // Its answer shows that they have begun.
  const typename = await client.ask(subscribe('q', '{ __typename }'));
  assert.equal(typename.type, 'next');
  assert.equal((await client.next()).type, 'complete');
  return client;
}

async function openAll(server: TestServer, token: string) {
  const stream = await askEvents(server, query, { Authorization: `Bearer ${token}` });
  assert.equal(await stream.next(), ':');
  return { stream, sockets: [await connect(server, token), await connect(server, token, true)] };
}

async function start(t: TestContext, STORE_URL: string) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const clock = { time: Date.now() };
  const now = (): Date => new Date(clock.time);
  const env = { STORE_URL, REQUIRE_AUTH: 'members', JWT_SECRET: 's'.repeat(32) };
  const startNode = () => startServer(t, { env, now, probed: false });
  const nodes = [await startNode(), await startNode()];
  const command = async (text: string, password = ''): Promise<void> => {
    const input = `${password}\n`;
    const { code } = await runCommandHere(['accounts', ...text.split(' ')], { env, input });
    assert.equal(code, 0);
  };
  /** Fifteen seconds, in which what is sent arrives. */
  const passInterval = async (): Promise<void> => {
    for (let second = 0; second < 15; second += 1) {
      t.mock.timers.tick(1_000);
      await pause(10);
    }
  };
  return { nodes, command, clock, passInterval };
}

for (const place of durableStores) {
  describe(place.name, { skip: place.skip }, () => {
    it('a new password, or a removal, ends the subscriptions of an account, and no others', async (t) => {
      const { nodes, command, clock, passInterval } = await start(t, await place.newUrl(t));
      const [server] = nodes as [TestServer];
      await command('add ann --email ann@example.org', passwords.old);
      const other = await connect(server, await logIn(server));
      const changes = [
        [passwords.old, () => command('passwd ann', passwords.new)],
        [passwords.new, () => command('remove ann')],
      ] as const;
      for (const [password, change] of changes) {
        await t.test(String(change), async () => {
          const token = await logIn(server, 'ann', password);
          const opened = await Promise.all(nodes.map((node) => openAll(node, token)));
          const sockets = opened.flatMap((one) => one.sockets);
          // The expiry of its token ends no subscription.
          clock.time += 3_600_000;
          await passInterval();
          for (const [at, socket] of sockets.entries())
            assert.equal(socket.socket.readyState, 1, `socket ${at}`);
          await change();
          await passInterval();
          for (const { closed } of sockets) {
            assert.deepEqual(await soon(closed), { code: 4403, reason: 'Forbidden' });
          }
          for (const { stream } of opened) {
            const event = await soon(stream.nextEvent());
            assert.equal(event, ended);
            assert.equal(await stream.nextEvent(), completeEvent);
            assert.equal(await stream.nextEvent(), undefined);
          }
        });
      }
      await other.settle();
      assert.equal(other.socket.readyState, 1);
    });
  });
}

it(
  'who is no administrator any more gets no comments of hidden posts',
  { skip: onPostgres.skip },
  async (t) => {
    const url = await onPostgres.newUrl(t);
    const { nodes, command, passInterval } = await start(t, url);
    const [server] = nodes as [TestServer];
    await command('add ann --email ann@example.org --role ADMIN', passwords.old);
    const ann = await connect(server, await logIn(server, 'ann', passwords.old));
    const Authorization = `Bearer ${await logIn(server)}`;
    const send = async (method: string, path: string, value: object): Promise<string> => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const headers = { Authorization, 'Content-Type': type };
      const response = await server.fetch(path, { method, headers, body: JSON.stringify(value) });
      return response.headers.get('location') ?? '';
    };
    const draft = await send('POST', '/posts', { title: 'a', content: 'b' });
    const other = await send('POST', '/posts', { title: 'a', content: 'b' });
    await send('PATCH', other, { status: 'PUBLISHED' });
    const idOf = async (): Promise<string> => JSON.stringify((await ann.next()).payload);
    const first = await send('POST', `${draft}/comments`, { content: 'one' });
    assert.match(await idOf(), new RegExp(first.split('/').at(-1) ?? '-'));
    const session = openSession(t, url);
    await session`UPDATE inkwell.accounts SET roles = '["USER"]' WHERE username = 'ann'`;
    await passInterval();
    await send('POST', `${draft}/comments`, { content: 'two' });
    const last = await send('POST', `${other}/comments`, { content: 'three' });
    await ann.next(); // the second subscription to the first comment
    assert.match(await idOf(), new RegExp(last.split('/').at(-1) ?? '-'));
  },
);
