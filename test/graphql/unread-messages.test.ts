/** Whoever does not read is not read. */

import diagnostics from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { Engine } from '../../dist/graphql/engine.js';
import { startEndpoint } from '../support/graphql-endpoint.ts';
import { times } from '../support/lists.ts';
import { until } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

/** Results of 50 MB, which no kernel takes on their way, given when they are called for. */
function startHeld(t: TestContext) {
  const held: (() => void)[] = [];
  const big = JSON.stringify({ data: { big: 'x'.repeat(5_000_000) } });
  const execute: Engine['execute'] = async () => {
    await new Promise<void>((resolve) => void held.push(resolve));
    return { json: big, codes: [], isRepeatable: false };
  };
  const wrap = (engine: Engine): Engine => ({ ...engine, execute });
  return { held, endpoint: startEndpoint(t, { wrap }) };
}

test('while a client does not read, its messages are not read', async (t) => {
  let accepted: Socket | undefined;
  const note = (message: unknown): void => void ({ socket: accepted } = message as never);
  diagnostics.subscribe('net.server.socket', note);
  t.after(() => diagnostics.unsubscribe('net.server.socket', note));
  const { held, endpoint } = startHeld(t);
  const client = await connectReady(endpoint);
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
