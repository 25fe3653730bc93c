/** What a hostile, slow or dead client of event streams cannot do to others: as over sockets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Engine } from '../../dist/graphql/engine.js';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.js';
import { keepOthersServed } from '../support/prober.js';
import { askEvents, completeEvent, type EventReader, nextEvent } from '../support/sse-client.js';
import { assertWithin } from '../support/pace.js';
import { until } from '../support/until.js';

keepOthersServed();

const subscription = 'subscription { commentAdded { content } }';
const eventOf = (content: string): string => nextEvent({ data: { commentAdded: { content } } });

/** A stream that has begun. */
async function subscribe(endpoint: GraphqlEndpoint, query = subscription): Promise<EventReader> {
  const reader = await askEvents(endpoint, query);
  assert.equal(await reader.next(), ':');
  return reader;
}

/** What answers instead of a stream. */
async function refusal(endpoint: GraphqlEndpoint, query: string, body?: string | Buffer) {
  const { response } = await askEvents(endpoint, query, body);
  let text = '';
  for await (const chunk of response) text += String(chunk);
  const { code } = JSON.parse(text) as { readonly code: string };
  return { status: response.statusCode, code, text, headers: response.headers };
}

describe('requests', { concurrency: 4 }, () => {
  test('a fault of the service in an execution is masked, and nothing else ends', async (t) => {
    const wrap = (engine: Engine): Engine => {
      return { ...engine, execute: () => Promise.reject(new Error('secret')) };
    };
    const endpoint = await startEndpoint(t, { wrap });
    const other = await subscribe(endpoint);
    const refused = await refusal(endpoint, '{ __typename }');
    assert.equal(refused.status, 500);
    assert.doesNotMatch(refused.text, /secret/);
    assert.deepEqual(endpoint.logged, ['request failed']);
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 1 });
    other.leave();
  });
});

describe('streams', { concurrency: 4 }, () => {
  test('one more than the limit is 503, the others run, and a place gets free', async (t) => {
    const endpoint = await startEndpoint(t, { env: { CONNECTIONS_MAX: '16' } });
    const readers = [];
    for (let count = 0; count < 8; count += 1) readers.push(await subscribe(endpoint));
    const refused = await refusal(endpoint, subscription);
    assert.deepEqual([refused.status, refused.code], [503, 'overloaded']);
    assert.match(String(refused.headers['retry-after']), /^[0-9]+$/);
    endpoint.comment('for all');
    for (const reader of readers) assert.equal(await reader.next(), eventOf('for all'));
    readers.pop()?.leave();
    await until(() => endpoint.streams.size <= 7);
    (await subscribe(endpoint)).leave();
    for (const reader of readers) reader.leave();
  });

  test('one different subscription more than the limit is refused, the same is not', async (t) => {
    const endpoint = await startEndpoint(t, { distinctMax: 1 });
    const readers = [await subscribe(endpoint), await subscribe(endpoint)];
    const refused = await refusal(endpoint, 'subscription { commentAdded { id } }');
    assert.deepEqual([refused.status, refused.code], [503, 'overloaded']);
    assert.equal(endpoint.streams.size, 2);
    for (const reader of readers) reader.leave();
  });

  test('of an event that fails end with a masked error, and the others go on', async (t) => {
    const wrap = (engine: Engine): Engine => {
      return { ...engine, subscribe: () => Promise.reject(new Error('secret')) };
    };
    const endpoint = await startEndpoint(t, { wrap });
    const reader = await askEvents(endpoint, subscription);
    assert.equal(await reader.next(), ':');
    const told = (await reader.next()) ?? '';
    assert.match(told, /INTERNAL_SERVER_ERROR/);
    assert.doesNotMatch(told, /secret/);
    assert.equal(await reader.next(), completeEvent);
    assert.equal(await reader.next(), undefined);
    assert.deepEqual(endpoint.logged, ['subscription failed']);
  });
});

describe('clients', { concurrency: 4 }, () => {
  test('that read slowly, but within their queue, get all in order', async (t) => {
    const endpoint = await startEndpoint(t);
    const reader = await subscribe(endpoint);
    const filler = 'x'.repeat(20_000);
    for (let round = 0; round < 5; round += 1) {
      // More than the machine takes on the way, less than may wait.
      for (let at = 0; at < 40; at += 1) endpoint.comment(`${round} ${at} ${filler}`);
      for (let count = 0; count < 50; count += 1) await turn();
      for (let at = 0; at < 40; at += 1) {
        assert.equal(await reader.next(), eventOf(`${round} ${at} ${filler}`));
      }
    }
    reader.leave();
  });

  test('share one budget for what waits: the more streams, the smaller each', async (t) => {
    const env = {
      WAITING_BYTES_MAX: String(1024 * 1024),
      IDLE_TIMEOUT_SECONDS: '300',
    };
    const endpoint = await startEndpoint(t, { env });
    const silent: EventReader[] = [];
    for (let count = 0; count < 16; count += 1)
      silent.push(await askEvents(endpoint, subscription));
    await until(() => endpoint.subscriptions.count().subscribers >= 16);
    for (let sent = 0; endpoint.streams.size > 0 && sent < 2_000; sent += 1) {
      endpoint.comment('x'.repeat(50_000));
      await turn();
    }
    assert.equal(endpoint.streams.size, 0);
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 0, subscribers: 0 });
    for (const reader of silent) reader.leave();
  });

  test('that are reset in the middle of everything harm nobody', async (t) => {
    const endpoint = await startEndpoint(t);
    const reader = await subscribe(endpoint);
    for (let count = 0; count < 10; count += 1) {
      const client = await askEvents(endpoint, subscription);
      endpoint.comment(`${count}`);
      client.response.socket.resetAndDestroy();
    }
    await until(() => endpoint.streams.size <= 1);
    for (let count = 0; count < 10; count += 1) {
      assert.equal(await reader.next(), eventOf(`${count}`));
    }
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 1 });
    assert.deepEqual(endpoint.logged, []);
    reader.leave();
  });
});

test('a clean stop does not wait for those who do not read', async (t) => {
  const endpoint = await startEndpoint(t, {
    env: { WAITING_BYTES_MAX: '1073741824' },
  });
  const silent = await askEvents(endpoint, subscription);
  await until(() => endpoint.streams.size >= 1);
  // More than the machine takes on the way, less than may wait.
  for (let sent = 0; sent < 120; sent += 1) {
    endpoint.comment('x'.repeat(60_000));
    await turn();
  }
  assert.equal(endpoint.streams.size, 1);
  const began = performance.now();
  await endpoint.stop();
  assertWithin(5_000, performance.now() - began);
  assert.deepEqual(endpoint.logged, []);
  silent.leave();
});
