/** What lines of the log say about a request: its trace and its operation. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../dist/config.js';
import type { HttpRequest } from '../../dist/http/message.js';
import type { LogFacts } from '../../dist/log.js';
import { createMonitor, type MonitorDeps } from '../../dist/watch/monitor.js';
import { type LogRecord, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const all = { env: { LOG_REQUESTS: 'all' } };

/** The lines of finished requests, once there are so many. */
async function requestsOf(server: Pick<TestServer, 'logged'>, count: number): Promise<LogRecord[]> {
  const lines = (): LogRecord[] => server.logged.filter(({ event }) => event === 'request');
  await until('lines of requests', () => lines().length >= count);
  return lines();
}

test('the trace of a request is on every line with its id, and on no other', async (t) => {
  const server = await startServer(t, all);
  for (const given of [traceparent, '00-short-b7ad6b7169203331-01']) {
    const body = new FormData();
    body.append('part', new Blob(['abc']), 'a.txt');
    const options = { method: 'POST', body, headers: { traceparent: given } };
    assert.equal((await server.fetch('/api/multiparts/simple', options)).status, 200, given);
  }
  await requestsOf(server, 2);
  const trace = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const none = [undefined, undefined];
  assert.deepEqual(
    server.logged
      .filter(({ event }) => event === 'request' || event === 'file uploaded')
      .map(({ event, trace_id, span_id }) => [event, trace_id, span_id]),
    [
      ['file uploaded', ...trace],
      ['request', ...trace],
      ['file uploaded', ...none],
      ['request', ...none],
    ],
  );
});

test('the line of a GraphQL request has its operation and its codes', async (t) => {
  const server = await startServer(t, all);
  const ask = (body: unknown) => server.send('POST', '/graphql', body);
  await ask({ query: 'query Posts { allPosts { id } }' });
  await ask({ query: '{ secret }' });
  await ask({ query: `query ${'N'.repeat(90)} { postById(postId: "x") { id } }` });
  await ask([
    { query: 'mutation { addComment(commentInput: {postId: "x", content: "c"}) }' },
    {},
    {},
  ]);
  const lines = await requestsOf(server, 4);
  assert.deepEqual(
    lines.map(({ operation, codes }) => [operation, codes]),
    [
      ['query Posts', undefined],
      [undefined, 'GRAPHQL_VALIDATION_FAILED'],
      [`query ${'N'.repeat(58)}`, undefined],
      ['batch of 3', 'NOT_FOUND BAD_USER_INPUT'],
    ],
  );
});

test('of 10,001 requests under way with a trace the oldest is forgotten', () => {
  const lines: (LogFacts | undefined)[] = [];
  const deps = {
    log: (_level: unknown, _event: unknown, facts?: LogFacts) => void lines.push(facts),
    monotonicNow: () => 0,
  };
  // Without ADMIN_PORT nothing is read for metrics.
  const { observer, log } = createMonitor(readConfig({}), deps as unknown as MonitorDeps);
  const begin = (id: string): HttpRequest => {
    const request = { id, method: 'GET', header: () => traceparent } as unknown as HttpRequest;
    observer.begin(request);
    return request;
  };
  for (let at = 0; at <= 10_000; at += 1) {
    // One that has ended takes no place.
    const times = { waitedMilliseconds: 0, milliseconds: 0 };
    observer.end({
      request: begin(`over ${at}`),
      status: 204,
      madeStatus: 204,
      bytes: 0,
      ...times,
    });
    begin(`${at}`);
  }
  for (const requestId of ['0', '1']) log('info', 'a', { requestId });
  const traces = lines.map((facts) => facts?.['trace_id']);
  assert.deepEqual(traces, [undefined, '0af7651916cd43dd8448eb211c80319c']);
});
