/** The subscriptions of an account end with it, or with its password, and follow its roles. */

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { runCommandHere } from '../support/command.ts';
import { logIn } from '../support/login.ts';
import { openSession } from '../support/session.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { askEvents, completeEvent, nextEvent } from '../support/sse-client.ts';
import { durableStores, onPostgres } from '../support/stores.ts';
import { connectByHand, type HandClient, subscribe } from '../support/ws-clients.ts';

const query = 'subscription { commentAdded { id } }';
const passwords = ['a jar of black ink', 'a jar of blue blots'] as const;
const message = 'The account was removed, or its password was changed.';
const ended = nextEvent({ errors: [{ message, extensions: { code: 'UNAUTHENTICATED' } }] });

/** What comes of it, or that nothing does. */
const soon = <T>(promise: Promise<T>): Promise<T | string> =>
  Promise.race([promise, pause(5_000, 'nothing came', { ref: false })]);

async function connect(to: TestServer, token: string, legacy = false): Promise<HandClient> {
  const protocols = legacy ? [] : ['graphql-transport-ws'];
  const client = await connectByHand(to.port, { protocols });
  const payload = { Authorization: `Bearer ${token}` };
  const acknowledged = await client.ask({ type: 'connection_init', payload });
  assert.equal(acknowledged.type, 'connection_ack');
  for (const id of ['s', 't']) client.send(subscribe(id, query));
  // Its answer shows that they have begun.
  assert.equal((await client.ask(subscribe('q', '{ __typename }'))).type, 'next');
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
  const env = { STORE_URL, REQUIRE_AUTH: 'members', JWT_SECRET: 's'.repeat(32) };
  const options = { env, now: () => new Date(clock.time), probed: false };
  const nodes = [await startServer(t, options), await startServer(t, options)] as const;
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

for (const { name, skip, newUrl } of durableStores) {
  it(
    `a new password, or a removal, ends the subscriptions of an account, ${name}`,
    { skip },
    async (t) => {
      const { nodes, command, clock, passInterval } = await start(t, await newUrl(t));
      const [server] = nodes;
      await command('add ann --email ann@example.org', passwords[0]);
      const other = await connect(server, await logIn(server));
      for (const [password, text, next] of [
        [passwords[0], 'passwd ann', passwords[1]],
        [passwords[1], 'remove ann', ''],
      ] as const) {
        const token = await logIn(server, 'ann', password);
        const opened = await Promise.all(nodes.map((node) => openAll(node, token)));
        const sockets = opened.flatMap((one) => one.sockets);
        // The expiry of its token ends no subscription.
        clock.time += 3_600_000;
        await passInterval();
        for (const { socket } of sockets) assert.equal(socket.readyState, 1, text);
        await command(text, next);
        await passInterval();
        for (const { closed } of sockets) {
          assert.deepEqual(await soon(closed), { code: 4403, reason: 'Forbidden' }, text);
        }
        for (const { stream } of opened) {
          assert.equal(await soon(stream.nextEvent()), ended, text);
          assert.equal(await stream.nextEvent(), completeEvent);
          assert.equal(await stream.nextEvent(), undefined);
        }
      }
      await other.settle();
      assert.equal(other.socket.readyState, 1);
    },
  );
}

const { skip } = onPostgres;
it('who is no administrator any more gets no comments of hidden posts', { skip }, async (t) => {
  const url = await onPostgres.newUrl(t);
  const { nodes, command, passInterval } = await start(t, url);
  const [server] = nodes;
  await command('add ann --email ann@example.org --role ADMIN', passwords[0]);
  const ann = await connect(server, await logIn(server, 'ann', passwords[0]));
  const headers = { Authorization: `Bearer ${await logIn(server)}` };
  const draft = await server.make('/posts', { title: 'a', content: 'b' }, headers);
  const other = await server.make('/posts', { title: 'a', content: 'b' }, headers);
  const merge = { ...headers, 'Content-Type': 'application/merge-patch+json' };
  await server.send('PATCH', other, { status: 'PUBLISHED' }, merge);
  const comment = (post: string): Promise<string> =>
    server.make(`${post}/comments`, { content: 'c' }, headers);
  const assertNext = async (path: string): Promise<void> =>
    assert.match(JSON.stringify((await ann.next()).payload), new RegExp(path.slice(10)));
  await assertNext(await comment(draft));
  const session = openSession(t, url);
  await session`UPDATE inkwell.accounts SET roles = '["USER"]' WHERE username = 'ann'`;
  await passInterval();
  await comment(draft);
  const last = await comment(other);
  await ann.next(); // the second subscription to the first comment
  await assertNext(last);
});
