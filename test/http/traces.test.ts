/** The traces of requests under way, by which lines of the log are found. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../dist/config.js';
import type { HttpRequest } from '../../dist/http/message.js';
import type { LogFacts } from '../../dist/log.js';
import { createMonitor, type MonitorDeps } from '../../dist/watch/monitor.js';

test('of 10,001 requests under way with a trace the oldest is forgotten', () => {
  const lines: (LogFacts | undefined)[] = [];
  const deps = {
    log: (_level: unknown, _event: unknown, facts?: LogFacts) => void lines.push(facts),
    monotonicNow: () => 0,
  };
  // Without ADMIN_PORT nothing is read for metrics.
  const { observer, log } = createMonitor(readConfig({}), deps as unknown as MonitorDeps);
  const header = (): string => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  for (let at = 0; at <= 10_000; at += 1) {
    observer.begin({ id: `${at}`, header } as unknown as HttpRequest);
  }
  for (const requestId of ['0', '1']) log('info', 'a', { requestId });
  const traces = lines.map((facts) => facts?.['trace_id']);
  assert.deepEqual(traces, [undefined, '0af7651916cd43dd8448eb211c80319c']);
});
