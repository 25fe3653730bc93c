/**
 * Metrics in the text format of Prometheus. Every label has few values: the patterns of the routes,
 * statuses and the service's own words, nothing that a client writes.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Handler, textReply } from './message.ts';
import type { Finished, Observe } from './server/observe.ts';

export interface Metrics {
  readonly observe: Observe;
  /** One more event of security. */
  countEvent(event: string): void;
  /** A value that is read when it is asked for. */
  gauge(name: string, help: string, read: () => number): void;
  /** `GET /metrics`. */
  readonly handler: Handler;
  close(): void;
}

/** Upper bounds in seconds. */
const buckets = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30] as const;

interface Series {
  readonly labels: string;
  readonly counts: number[];
  count: number;
  sum: number;
}

/** Methods that are known: any other is one more label value that a client could choose. */
const methods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

export function createMetrics(): Metrics {
  const requests = new Map<string, Series>();
  const events = new Map<string, number>();
  const gauges: (() => string)[] = [];
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();

  const toText = (): string => {
    const lines = [
      ...describe('inkwell_http_request_duration_seconds', 'histogram', 'Requests that are over.'),
      ...[...requests.values()].flatMap(toHistogram),
      ...describe('inkwell_security_events_total', 'counter', 'Refusals, by what was refused.'),
      ...[...events].map(
        ([event, count]) => `inkwell_security_events_total{event="${event}"} ${count}`,
      ),
      ...gauges.map((read) => read()),
    ];
    return `${lines.join('\n')}\n`;
  };
  const gauge: Metrics['gauge'] = (name, help, read) => {
    gauges.push(() => [...describe(name, 'gauge', help), `${name} ${read()}`].join('\n'));
  };
  gauge('inkwell_event_loop_delay_seconds', 'Delay of the event loop, 99th percentile.', () => {
    const seconds = delay.percentile(99) / 1e9;
    delay.reset();
    return seconds;
  });

  return {
    gauge,
    observe: (finished) => add(requests, finished),
    countEvent: (event) => events.set(event, (events.get(event) ?? 0) + 1),
    handler() {
      const reply = textReply(200, toText());
      return { ...reply, headers: ['Content-Type', 'text/plain; version=0.0.4; charset=utf-8'] };
    },
    close: () => void delay.disable(),
  };
}

function add(requests: Map<string, Series>, { request, status, milliseconds }: Finished): void {
  const method = methods.includes(request.method) ? request.method : 'other';
  const route = request.endpoint?.route ?? 'none';
  const key = `${method} ${status} ${route}`;
  let series = requests.get(key);
  if (series === undefined) {
    const labels = `method="${method}",route="${route}",status="${status}"`;
    series = { labels, counts: buckets.map(() => 0), count: 0, sum: 0 };
    requests.set(key, series);
  }
  const seconds = milliseconds / 1000;
  const at = buckets.findIndex((bound) => seconds <= bound);
  if (at !== -1) series.counts[at] = (series.counts[at] ?? 0) + 1;
  series.count += 1;
  series.sum += seconds;
}

function toHistogram({ labels, counts, count, sum }: Series): readonly string[] {
  const name = 'inkwell_http_request_duration_seconds';
  let below = 0;
  const lines = buckets.map((bound, at) => {
    below += counts[at] ?? 0;
    return `${name}_bucket{${labels},le="${bound}"} ${below}`;
  });
  return [
    ...lines,
    `${name}_bucket{${labels},le="+Inf"} ${count}`,
    `${name}_sum{${labels}} ${sum}`,
    `${name}_count{${labels}} ${count}`,
  ];
}

function describe(name: string, type: string, help: string): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}
