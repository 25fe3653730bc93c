import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { wantsEvents } from '../../dist/graphql/http/sse.js';
import { startEndpoint } from '../support/graphql-endpoint.js';
import { keepOthersServed } from '../support/prober.js';
import { askEvents, completeEvent, nextEvent } from '../support/sse-client.js';
import { until } from '../support/until.js';

keepOthersServed();

const subscription = 'subscription { commentAdded { content } }';

test('a query answers with one next and complete', async (t) => {
  const endpoint = await startEndpoint(t);
  const reader = await askEvents(endpoint, '{ __typename }');
  assert.equal(reader.response.headers['content-type'], 'text/event-stream; charset=utf-8');
  assert.equal(reader.response.headers['cache-control'], 'no-store');
  assert.equal(await reader.next(), nextEvent({ data: { __typename: 'Query' } }));
  assert.equal(await reader.next(), completeEvent);
  assert.equal(await reader.next(), undefined);
});

test('an operation that is refused answers with its errors and complete', async (t) => {
  const endpoint = await startEndpoint(t);
  for (const query of ['{', '{ nothing }', 'subscription { nothing }']) {
    const reader = await askEvents(endpoint, query);
    assert.match((await reader.next()) ?? '', /^event: next\ndata: \{"errors":\[\{.*"message":/);
    assert.equal(await reader.next(), completeEvent);
  }
});

test('a subscription opens with a comment and gets each event in order', async (t) => {
  const endpoint = await startEndpoint(t);
  const reader = await askEvents(endpoint, subscription);
  assert.equal(await reader.next(), ':');
  for (const content of ['one', 'two\nlines', 'é'.repeat(5_000)]) {
    endpoint.comment(content);
    assert.equal(await reader.next(), nextEvent({ data: { commentAdded: { content } } }));
  }
  reader.leave();
});

test('a client that leaves takes its place in the group with it', async (t) => {
  const endpoint = await startEndpoint(t);
  const reader = await askEvents(endpoint, subscription);
  await reader.next();
  assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 1 });
  reader.leave();
  await until(() => endpoint.streams.size <= 0);
  assert.deepEqual(endpoint.subscriptions.count(), { groups: 0, subscribers: 0 });
});

test('a client that leaves while its response is made takes its place with it', async (t) => {
  let answer: (() => void) | undefined;
  const placed = () => new Promise<void>((resolve) => (answer = resolve));
  const endpoint = await startEndpoint(t, { placed });
  const socket = connect(endpoint.port, '127.0.0.1');
  const body = JSON.stringify({ query: subscription });
  const head = 'POST /graphql HTTP/1.1\r\nHost: blog.example\r\nAccept: text/event-stream\r\n';
  const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  socket.write(`${head}${type}${body}`);
  await until(() => endpoint.streams.size === 1);
  // It half-closes, as a client does that leaves.
  socket.end();
  socket.resume();
  await turn();
  answer?.();
  await once(socket, 'close');
  await until(() => endpoint.streams.size === 0);
  assert.deepEqual(endpoint.subscriptions.count(), { groups: 0, subscribers: 0 });
});

test('event streams and sockets share their groups', async (t) => {
  const endpoint = await startEndpoint(t);
  const readers = [
    await askEvents(endpoint, subscription),
    await askEvents(endpoint, subscription),
  ];
  for (const reader of readers) await reader.next();
  assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 2 });
  endpoint.comment('for both');
  for (const reader of readers) {
    assert.equal(
      await reader.next(),
      nextEvent({ data: { commentAdded: { content: 'for both' } } }),
    );
    reader.leave();
  }
});

test('comments keep a silent stream alive', async (t) => {
  const endpoint = await startEndpoint(t, {
    env: { IDLE_TIMEOUT_SECONDS: '1' },
    constants: { wsPingSeconds: 1 },
  });
  const reader = await askEvents(endpoint, subscription);
  for (let count = 0; count < 4; count += 1) assert.equal(await reader.next(), ':');
  reader.leave();
});

test('a client that does not read is ended, and a reader gets all in order', async (t) => {
  const env = { WAITING_BYTES_MAX: '8388608', IDLE_TIMEOUT_SECONDS: '300' };
  const endpoint = await startEndpoint(t, { env });
  const silent = await askEvents(endpoint, subscription);
  const reader = await askEvents(endpoint, subscription);
  await reader.next();
  await until(() => endpoint.streams.size >= 2);
  const filler = 'x'.repeat(50_000);
  let sent = 0;
  while (endpoint.streams.size === 2 && sent < 2_000) {
    const content = `${sent} ${filler}`;
    endpoint.comment(content);
    sent += 1;
    assert.equal(await reader.next(), nextEvent({ data: { commentAdded: { content } } }));
  }
  assert.equal(endpoint.streams.size, 1);
  assert.deepEqual(endpoint.dropped, ['behind']);
  silent.leave();
  reader.leave();
});

test('one stream more than the limit is refused with 503', async (t) => {
  const endpoint = await startEndpoint(t, { env: { CONNECTIONS_MAX: '12' } });
  const open = await Promise.all(
    Array.from({ length: 6 }, () => askEvents(endpoint, subscription)),
  );
  for (const reader of open) await reader.next();
  const second = await askEvents(endpoint, subscription);
  assert.equal(second.response.statusCode, 503);
  second.response.resume();
  for (const reader of open) reader.leave();
});

test('a clean stop ends streams without complete', async (t) => {
  const endpoint = await startEndpoint(t);
  const reader = await askEvents(endpoint, subscription);
  await reader.next();
  const stopped = endpoint.stop();
  assert.equal(await reader.next(), undefined);
  await stopped;
  assert.deepEqual(endpoint.subscriptions.count(), { groups: 0, subscribers: 0 });
});

test('events are answered where the client likes them best', () => {
  const accepting = (accept: string | undefined) => ({ header: () => accept });
  for (const accept of ['text/event-stream', 'text/event-stream, application/json']) {
    assert.equal(wantsEvents(accepting(accept)), true);
  }
  for (const accept of [undefined, '*/*', 'application/json', 'text/event-stream;q=0']) {
    assert.equal(wantsEvents(accepting(accept)), false);
  }
  const urql =
    'application/graphql-response+json, application/graphql+json, application/json, ' +
    'text/event-stream, multipart/mixed';
  for (const accept of ['application/json, text/event-stream;q=0.5', urql]) {
    assert.equal(wantsEvents(accepting(accept)), false);
  }
  const preferring = urql
    .replace('event-stream', 'event-stream;q=1')
    .replaceAll('json,', 'json;q=0.9,');
  for (const accept of [preferring, '*/*, text/event-stream', 'text/event-stream, */*']) {
    assert.equal(wantsEvents(accepting(accept)), true);
  }
});
