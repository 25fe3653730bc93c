/** Messages in pieces of a byte: each piece takes memory beside its bytes, so they are counted. */

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { startEndpoint } from '../support/graphql-endpoint.js';
import { keepOthersServed } from '../support/prober.js';
import { connectByHand, connectReady, type HandClient } from '../support/ws-clients.js';

keepOthersServed();

const protocols = ['graphql-transport-ws'];

function sendInFragments({ socket }: HandClient, text: string): void {
  for (let at = 0; at < text.length; at += 1) {
    socket.send(text.charAt(at), { fin: at === text.length - 1 });
  }
}

test('a message in 32 fragments is read, one more closes with 1008', async (t) => {
  const { port } = await startEndpoint(t);
  const client = await connectByHand(port, { protocols });
  sendInFragments(client, '{"type":"connection_init"}'.padEnd(32));
  assert.equal((await client.next()).type, 'connection_ack');
  sendInFragments(client, '{"type":"ping"}'.padEnd(33));
  assert.equal((await client.closed).code, 1008);
});

test('a frame that comes byte by byte closes with 1008', async (t) => {
  const { port } = await startEndpoint(t);
  const client = await connectReady(port, { protocols });
  const { _socket: raw } = client.socket as unknown as { readonly _socket: Socket };
  raw.setNoDelay(true);
  // A text of 60,000 bytes, with a mask that changes nothing.
  raw.write(Buffer.from([0x81, 0xfe, 60_000 >> 8, 60_000 & 0xff, 0, 0, 0, 0]));
  for (let sent = 0; sent < 59_999 && client.socket.readyState === 1; sent += 1) {
    raw.write(' ');
    await turn();
  }
  assert.equal((await client.closed).code, 1008);
});
