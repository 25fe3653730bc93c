/** What a WebSocket with a subscription takes of memory, in a service of its own. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runProgram } from '../support/program.ts';
import { connectReady, type HandClient } from '../support/ws-clients.ts';

const subscription = 'subscription { commentAdded { id content postId } }';

/** Subscribed: the answer to the ping behind the subscription has come. */
async function subscribe(port: number): Promise<HandClient> {
  const client = await connectReady(port);
  client.send({ type: 'subscribe', id: '1', payload: { query: subscription } });
  await client.ask({ type: 'ping' });
  return client;
}

test('a socket keeps little beside what ws and Node keep of it', async (t) => {
  const program = await runProgram(t, { measured: true });
  const { port } = await program.listening();
  const clients: HandClient[] = [];
  const open = async (count: number): Promise<number> => {
    for (let opened = 0; opened < count; opened += 1) clients.push(await subscribe(port));
    return (await program.measure()).inUse;
  };
  // The program compiles what they run meanwhile.
  const first = await open(300);
  const count = 800;
  const bytes = ((await open(count)) - first) / count;
  // A bare socket of ws takes 3 KiB, the request of its upgrade would take 1.5 KiB more, a copy of
  // what all sockets share 1 KiB.
  assert.ok(bytes < 6_200, `${bytes} bytes`);
  for (const client of clients) client.socket.terminate();
});
