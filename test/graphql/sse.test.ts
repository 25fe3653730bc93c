/** Event streams: what they carry, and what a hostile, slow or dead client cannot do to others. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Engine } from '../../dist/graphql/engine.js';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.ts';
import { assertWithin } from '../support/pace.ts';
import { keepOthersServed } from '../support/prober.ts';
import { connectRaw } from '../support/raw-client.ts';
import { askEvents, completeEvent, type EventReader } from '../support/sse-client.ts';
import { nextEvent, withoutId } from '../support/sse-client.ts';
import { startServer } from '../support/server.ts';
import { until, within } from '../support/until.ts';

keepOthersServed();

const subscription = 'subscription { commentAdded { content } }';
const eventOf = (content: string): string => nextEvent({ data: { commentAdded: { content } } });
const fail = (): Promise<never> => Promise.reject(new Error('secret'));

/** A stream that has begun. */
async function subscribe(endpoint: GraphqlEndpoint): Promise<EventReader> {
  const reader = await askEvents(endpoint, subscription);
  assert.equal(await reader.next(), ':');
  return reader;
}

/** What answers instead of a stream. */
async function refusal(endpoint: GraphqlEndpoint, query: string) {
  const { response } = await askEvents(endpoint, query);
  let text = '';
  response.on('data', (chunk) => (text += String(chunk)));
  await within(once(response, 'end'), 'the end of a refusal');
  return { status: response.statusCode, text, headers: response.headers };
}

describe('what event streams carry', { concurrency: 4 }, () => {
  test('a query answers with one next and complete', async (t) => {
    const reader = await askEvents(await startEndpoint(t), '{ __typename }');
    assert.equal(reader.response.headers['content-type'], 'text/event-stream; charset=utf-8');
    assert.equal(reader.response.headers['cache-control'], 'no-store, no-transform');
    // Else some proxies keep the events back.
    assert.equal(reader.response.headers['x-accel-buffering'], 'no');
    assert.equal(await reader.next(), nextEvent({ data: { __typename: 'Query' } }));
    assert.equal(await reader.next(), completeEvent);
    assert.equal(await reader.next(), undefined);
  });

  test('an operation that is refused answers with its errors and complete', async (t) => {
    const endpoint = await startEndpoint(t);
    for (const query of ['{', '{ nothing }', 'subscription { nothing }']) {
      const reader = await askEvents(endpoint, query);
      const told = (await reader.next()) ?? '';
      assert.match(told, /^event: next\ndata: \{"errors":\[\{.*"message":/, query);
      assert.equal(await reader.next(), completeEvent, query);
    }
  });

  test('a subscription opens with a comment and gets each event in order, as its group', async (t) => {
    const endpoint = await startEndpoint(t);
    const readers = [await subscribe(endpoint), await subscribe(endpoint)];
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 2 });
    for (const content of ['one', 'two\nlines', 'é'.repeat(5_000)]) {
      endpoint.comment(content);
      for (const [at, reader] of readers.entries())
        assert.equal(withoutId(await reader.nextEvent()), eventOf(content), `reader ${at}`);
    }
  });

  for (const [method, sent] of [
    // Libraries send POST, and may end at an event that they do not know.
    ['POST', ':'],
    // A page cannot see what is no event.
    ['GET', 'event: ping\ndata:'],
  ] as const) {
    test(`a silent stream of a ${method} is kept alive, by ${JSON.stringify(sent)}`, async (t) => {
      const constants = { wsPingSeconds: 1 };
      const server = await startServer(t, { env: { IDLE_TIMEOUT_SECONDS: '1' }, constants });
      const reader = await askEvents(server, subscription, { method });
      assert.equal(await reader.next(), ':');
      for (let count = 0; count < 3; count += 1)
        assert.equal(await reader.next(), sent, `round ${count}`);
    });
  }

  test('a fault of the service in an execution is masked, and nothing else ends', async (t) => {
    const wrap = (engine: Engine): Engine => ({ ...engine, execute: fail });
    const endpoint = await startEndpoint(t, { wrap });
    await subscribe(endpoint);
    const refused = await refusal(endpoint, '{ __typename }');
    assert.equal(refused.status, 500);
    assert.doesNotMatch(refused.text, /secret/);
    assert.deepEqual(endpoint.logged, ['request failed']);
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 1 });
  });

  test('a subscription that fails ends with a masked error and complete', async (t) => {
    const wrap = (engine: Engine): Engine => ({ ...engine, subscribe: fail });
    const endpoint = await startEndpoint(t, { wrap });
    const reader = await subscribe(endpoint);
    const told = (await reader.nextEvent()) ?? '';
    assert.match(told, /INTERNAL_SERVER_ERROR","requestId":"subscription-\d+"/);
    assert.doesNotMatch(told, /secret/);
    assert.equal(await reader.nextEvent(), completeEvent);
    assert.equal(await reader.nextEvent(), undefined);
    assert.deepEqual([endpoint.logged, endpoint.dropped], [['subscription failed'], ['failed']]);
  });
});

describe('a client', { concurrency: 4 }, () => {
  test('that leaves while its response is made takes its place with it', async (t) => {
    let answer: (() => void) | undefined;
    const ready = () => new Promise<void>((resolve) => (answer = resolve));
    const endpoint = await startEndpoint(t, { ready });
    const client = await connectRaw(t, endpoint.port);
    const body = JSON.stringify({ query: subscription });
    const head = 'POST /graphql HTTP/1.1\r\nHost: blog.example\r\nAccept: text/event-stream\r\n';
    const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    client.send(`${head}${type}${body}`);
    await until('one stream', () => endpoint.streams.size === 1);
    // As a client does that leaves.
    client.halfClose();
    await turn();
    answer?.();
    await once(client.socket, 'close');
    await until('no stream', () => endpoint.streams.size === 0);
    assert.equal(endpoint.subscriptions.count().subscribers, 0);
  });

  test('that is always late gives back the memory of what it has taken, and stays open', async (t) => {
    const env = { REQUEST_MEMORY_BYTES_MAX: '4294967296', IDLE_TIMEOUT_SECONDS: '300' };
    const endpoint = await startEndpoint(t, { env });
    const reader = await subscribe(endpoint);
    const before = endpoint.pool.bytes;
    const contentOf = (at: number): string => `${at} ${'x'.repeat(60_000)}`;
    // More than the machine takes on the way, less than may wait.
    const late = 300;
    for (let at = 0; at < late; at += 1) {
      endpoint.comment(contentOf(at));
      await turn();
    }
    assert.ok(endpoint.pool.bytes > before);
    const unread = (late + 1) * eventOf(contentOf(999)).length;
    for (let at = 0; at < 3 * late; at += 1) {
      if (at < 2 * late) endpoint.comment(contentOf(late + at));
      assert.equal(withoutId(await reader.nextEvent()), eventOf(contentOf(at)), `event ${at}`);
      assert.ok(endpoint.pool.bytes - before <= unread, `${endpoint.pool.bytes} bytes`);
    }
    await until('the memory is given back', () => endpoint.pool.bytes === before);
  });

  test('that does not read is ended, and a reader gets all in order', async (t) => {
    const env = { REQUEST_MEMORY_BYTES_MAX: '8388608', IDLE_TIMEOUT_SECONDS: '300' };
    const endpoint = await startEndpoint(t, { env });
    await askEvents(endpoint, subscription);
    const reader = await subscribe(endpoint);
    await until('two streams', () => endpoint.streams.size >= 2);
    const before = endpoint.pool.bytes;
    for (let sent = 0; endpoint.streams.size === 2 && sent < 2_000; sent += 1) {
      const content = `${sent} ${'x'.repeat(50_000)}`;
      endpoint.comment(content);
      assert.equal(withoutId(await reader.nextEvent()), eventOf(content), `round ${sent}`);
    }
    assert.equal(endpoint.streams.size, 1);
    assert.deepEqual(endpoint.dropped, ['slow_consumer']);
    await until('the memory is given back', () => endpoint.pool.bytes <= before);
  });

  test('that does not read is not waited for by a clean stop', async (t) => {
    const endpoint = await startEndpoint(t, { env: { REQUEST_MEMORY_BYTES_MAX: '1073741824' } });
    await askEvents(endpoint, subscription);
    await until('a stream', () => endpoint.streams.size >= 1);
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
  });
});

describe('of streams', { concurrency: 4 }, () => {
  test('one more than the limit is 503, the others run, and a place gets free', async (t) => {
    const endpoint = await startEndpoint(t, { env: { CONNECTIONS_MAX: '16' } });
    const readers = [];
    for (let count = 0; count < 8; count += 1) readers.push(await subscribe(endpoint));
    const refused = await refusal(endpoint, subscription);
    assert.equal(refused.status, 503);
    assert.match(refused.text, /"code":"UNAVAILABLE"/);
    assert.match(String(refused.headers['retry-after']), /^[0-9]+$/);
    endpoint.comment('for all');
    for (const [at, reader] of readers.entries())
      assert.equal(withoutId(await reader.nextEvent()), eventOf('for all'), `reader ${at}`);
    readers.pop()?.leave();
    await until('all but seven streams ended', () => endpoint.streams.size <= 7);
    await subscribe(endpoint);
  });
});
