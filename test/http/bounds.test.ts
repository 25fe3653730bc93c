/** Bounds of one connection that are constants, each crossed by a literal. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { textResponse } from '../../dist/http/message.js';
import { startHandler, startHttp } from '../support/http-kit.ts';
import { ask, connectRaw, get } from '../support/raw-client.ts';

const post = (path: string, ...headers: readonly string[]): string =>
  get(path, ...headers).replace('GET', 'POST');

test('the connection stays behind 65,536 bytes that nobody reads, and ends behind one more', async (t) => {
  const { port } = await startHttp(t, { routes: {} });
  for (const [length, connection] of [
    [65_536, 'keep-alive'],
    [65_537, 'close'],
  ] as const) {
    const client = await connectRaw(t, port);
    const { status, headers } = await client.ask(post('/nowhere', `Content-Length: ${length}`));
    assert.deepEqual([status, headers.get('connection')], [404, connection]);
    client.destroy();
  }
});

test('without free memory there is a body, and a response, of 16,384 bytes, and none of one more', async (t) => {
  const { port, pool } = await startHandler(t, async (request) => {
    await request.readBody(1_000_000);
    return textResponse(200, 'x'.repeat(Number(request.query)));
  });
  pool.open().set(pool.bytesMax);
  for (const [bodyBytes, responseBytes, status] of [
    [16_384, 1, 200],
    [16_385, 1, 503],
    [1, 16_384, 200],
    [1, 16_385, 503],
  ] as const) {
    const head = post(`/?${responseBytes}`, `Content-Length: ${bodyBytes}`);
    const response = await ask(t, port, head + 'x'.repeat(bodyBytes));
    assert.equal(response.status, status, `${bodyBytes}, ${responseBytes}`);
  }
  // It comes when it is waited for.
  const client = await connectRaw(t, port);
  const head = post('/?1', 'Content-Length: 8000', 'Expect: 100-continue');
  assert.equal((await client.ask(head)).status, 100);
  assert.equal((await client.ask('x'.repeat(8_000))).status, 200);
});

/** `read`: whether the handler reads the body. */
async function startChunks(t: TestContext, read: boolean) {
  let isEnded = (): boolean => false;
  const { client } = await startHandler(t, async (request) => {
    const { socket } = request.incoming;
    isEnded = () => socket.destroyed;
    return textResponse(200, read ? String((await request.readBody(1e6)).length) : 'no');
  });
  client.socket.setNoDelay(true);
  /** In a packet: what this process sends in one call it reads in one. */
  const send = async (packet: string): Promise<void> => {
    client.send(packet);
    for (let iteration = 0; iteration < 20; iteration += 1) await turn();
  };
  await send(post('/', 'Transfer-Encoding: chunked'));
  return { client, send, isEnded: () => isEnded() };
}

const chunks = (count: number, bytes: number): string =>
  `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`.repeat(count);

for (const read of [true, false]) {
  test(`501 chunks of 63 bytes in a packet end a connection that is ${read ? '' : 'not '}read`, async (t) => {
    for (const [isTooMany, ...packets] of [
      [false, chunks(500, 63)],
      [true, chunks(501, 63)],
      [false, chunks(501, 64)],
      [false, chunks(300, 63), chunks(300, 63)],
    ] as const) {
      const { client, send, isEnded } = await startChunks(t, read);
      for (const packet of packets) await send(packet);
      assert.equal(isEnded(), isTooMany, String(packets.map(({ length }) => length)));
      if (!isTooMany) assert.equal((await client.ask('0\r\n\r\n')).status, 200);
    }
  });
}

test('of the rest of a refused body 8 MiB are read', async (t) => {
  let read = (): number => 0;
  const { client } = await startHandler(t, (request) => {
    const { socket } = request.incoming;
    read = () => socket.bytesRead;
    return textResponse(200, 'no');
  });
  client.send(post('/', 'Content-Length: 60000000'));
  client.send(Buffer.alloc(60_000_000));
  assert.equal((await client.response()).headers.get('connection'), 'close');
  for (let [quiet, before] = [0, 0]; quiet < 200; quiet = read() === before ? quiet + 1 : 0) {
    before = read();
    await turn();
  }
  client.destroy();
  assert.ok(read() > 8_388_608, `${read()}`);
  assert.ok(read() < 8_388_608 + 1_000_000, `${read()}`);
});

test('the rest of a refused body is read for two seconds, however it comes', async (t) => {
  const { client } = await startHandler(t, () => textResponse(200, 'no'));
  assert.equal((await client.ask(post('/', 'Content-Length: 60000000'))).status, 200);
  const sending = setInterval(() => client.send(Buffer.alloc(10_000)), 100);
  t.after(() => clearInterval(sending));
  await client.ended();
});

test('a request that was refused as late is not begun when the rest of its headers comes', async (t) => {
  let asked = 0;
  const env = { IDLE_TIMEOUT_SECONDS: '1' };
  const count = () => textResponse(200, String((asked += 1)));
  const { client } = await startHandler(t, count, { env });
  client.send('GET / HTTP/1.1\r\nHost: a\r\n');
  assert.equal((await client.response()).status, 408);
  client.send('\r\n');
  await client.ended();
  for (let iteration = 0; iteration < 20; iteration += 1) await turn();
  assert.equal(asked, 0);
});
