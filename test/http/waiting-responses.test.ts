/** Large responses that their clients do not take: counted until they are taken. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { textResponse } from '../../dist/http/message.js';
import { startHttp } from '../support/http-kit.js';
import { patient } from '../support/pace.js';
import { connectRaw, get, type RawClient } from '../support/raw-client.js';
import { until } from '../support/until.js';

const responseBytes = 30_000_000;

/** Room for one large response that waits, and not for a second one beside it. */
function start(t: TestContext) {
  const routes = { 'GET /large': () => textResponse(200, 'x'.repeat(responseBytes)) };
  return startHttp(t, { routes, env: { ...patient, WAITING_BYTES_MAX: '67108864' } });
}

/** A client that asks and takes no more than the head. */
async function askSlowly(t: TestContext, port: number): Promise<RawClient> {
  const client = await connectRaw(t, port);
  client.send(get('/large'));
  await once(client.socket, 'data');
  client.socket.pause();
  return client;
}

test('a response is counted until it is taken, and a second one is refused meanwhile', async (t) => {
  const { port, pool } = await start(t);
  const slow = await askSlowly(t, port);
  assert.equal(pool.bytes, responseBytes);
  const other = await connectRaw(t, port);
  const refused = await other.ask(get('/large'));
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  slow.socket.resume();
  assert.equal((await slow.response()).body.length, responseBytes);
  await until(() => pool.bytes <= 0);
  assert.equal((await other.ask(get('/large'))).status, 200);
});
