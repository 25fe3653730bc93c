/** Messages that are read in parts, and clients that are not read for now. */

import assert from 'node:assert/strict';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import type { Engine } from '../../dist/graphql/engine.js';
import { startEndpoint } from '../support/graphql-endpoint.ts';
import { times } from '../support/lists.ts';
import { until, within } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

/** Each result is given when it is called for. */
function hold(json: string) {
  const held: (() => void)[] = [];
  const execute: Engine['execute'] = async () => {
    await new Promise<void>((resolve) => void held.push(resolve));
    return { json, codes: [], isRepeatable: false };
  };
  return { held, wrap: (engine: Engine): Engine => ({ ...engine, execute }) };
}

test('messages that have come whole, pings too, leave nothing behind', async (t) => {
  const { port, pool } = await startEndpoint(t, { constants: { wsPingSeconds: 1 } });
  const client = await connectReady(port);
  const ping = async (): Promise<void> => {
    client.socket.ping('x');
    await within(once(client.socket, 'pong'), 'a pong');
  };
  for (const _ of times(300)) await client.settle();
  for (const _ of times(300)) await ping();
  client.socket.send('{"type":"ping"', { fin: false });
  await ping();
  assert.equal(pool.bytes, 0);
  client.socket.send('}');
  assert.equal((await client.next()).type, 'pong');
  // Slow ones, too.
  for (const _ of times(4)) {
    client.socket.send('{"type":"ping"'.padEnd(100_000), { fin: false });
    await within(once(client.socket, 'ping'), 'a ping');
    client.socket.send('}');
    assert.equal((await client.next()).type, 'pong');
  }
});

test('a client that is not read for now is kept, and can be closed', async (t) => {
  const { held: waiting, wrap } = hold('{}');
  const endpoint = await startEndpoint(t, { wrap, constants: { wsPingSeconds: 1 } });
  const [client, other] = [await connectReady(endpoint.port), await connectReady(endpoint.port)];
  client.send(subscribe('s', 'subscription { commentAdded { content } }'));
  for (const at of times(200)) client.send(subscribe(`${at}`, '{ __typename }'));
  await until('ten operations', () => waiting.length === 10);
  // In the time of four pings it answers none, as none is sent.
  for (const _ of times(4)) await within(once(other.socket, 'ping'), 'a ping');
  endpoint.comment('x');
  assert.equal((await client.next()).id, 's');
  for (const _ of times(1_100)) endpoint.comment('x');
  assert.equal((await client.closed).code, 1013);
});

test('while a client does not read, its messages are not read', async (t) => {
  let accepted: Socket | undefined;
  const note = (message: unknown): void => void ({ socket: accepted } = message as never);
  diagnostics.subscribe('net.server.socket', note);
  t.after(() => diagnostics.unsubscribe('net.server.socket', note));
  // Results of 50 MB, which no kernel takes on their way.
  const { held, wrap } = hold(JSON.stringify({ data: { big: 'x'.repeat(5_000_000) } }));
  const client = await connectReady(startEndpoint(t, { wrap }));
  for (const id of times(10)) client.send(subscribe(`${id}`, '{ __typename }'));
  await until('ten operations', () => held.length === 10);
  client.socket.pause();
  for (const finish of held) finish();
  await until('a backlog', () => (accepted?.writableLength ?? 0) > 10_000_000);
  for (const _ of times(195)) client.send({ type: 'ping' });
  await until('the pause', () => accepted?.isPaused() === true);
  client.socket.resume();
  const types = new Map<string, number>();
  while ((types.get('complete') ?? 0) + (types.get('pong') ?? 0) < 205) {
    const { type } = await client.next();
    types.set(type, (types.get(type) ?? 0) + 1);
  }
  client.socket.terminate();
});
