/**
 * Observability: the log of requests, security events and, if enabled, metrics. All metrics are
 * declared here.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Config } from '../config.ts';
import type { GraphqlCounts } from '../graphql/endpoint.ts';
import type { GraphqlWatch } from '../graphql/watch.ts';
import type { Handler } from '../http/message.ts';
import type { Observer } from '../http/server/observe.ts';
import { createRequestLog } from '../http/server/request-log.ts';
import { createCountedLog, type CountedLog, type Log } from '../log.ts';
import type { MemoryPool } from '../memory-pool.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import type { StoreWatch } from '../store/timed-store.ts';

export interface Watch {
  readonly security: CountedLog;
  readonly observer: Observer;
  /** This and the following are defined only if metrics are enabled. */
  readonly graphql?: GraphqlWatch;
  readonly store?: StoreWatch;
  /** `GET /metrics`. */
  readonly handler?: Handler;
  close(): void;
}

export interface WatchDeps {
  readonly log: Log;
  /** Log of requests when LOG_REQUESTS is `all`: it has no limit on lines per second. */
  readonly requestLog?: Log;
  readonly monotonicNow: () => number;
  readonly readings: Readings;
}

/** Numbers that are read when metrics are requested. */
export interface Readings {
  /** The memory held for clients. */
  readonly pool: MemoryPool;
  /** The memory for responses of `/metrics`, which clients cannot use up. */
  readonly adminPool: MemoryPool;
  readonly graphql: () => GraphqlCounts;
  /** The number of open connections to the main port. */
  readonly connections?: () => number;
  /** Memory of the process, in bytes. */
  readonly memory?: () => { readonly rss: number; readonly heapUsed: number };
}

export function createWatch(
  config: Pick<Config, 'logRequests' | 'trustedProxies' | 'adminPort'>,
  { log, requestLog = log, monotonicNow, readings }: WatchDeps,
): Watch {
  const report = createCountedLog(log, monotonicNow);
  if (config.adminPort === undefined) {
    const observer = createRequestLog({ config, log: requestLog, security: report });
    return { security: report, observer, close: () => undefined };
  }
  const metrics = createMetrics();
  const close = declareReadings(metrics, readings);
  const count = metrics.counter(
    'inkwell_security_events_total',
    'Failed and refused logins, and refused origins.',
    'event',
  );
  const security: CountedLog = (event, facts) => {
    count(event);
    report(event, facts);
  };
  const requests = createRequestLog({ config, log: requestLog, security });
  return {
    security,
    observer: measure(requests, metrics),
    graphql: declareGraphql(metrics),
    store: declareStore(metrics),
    handler() {
      const headers = ['Content-Type', 'text/plain; version=0.0.4; charset=utf-8'];
      return { status: 200, headers, body: metrics.toText(), pool: readings.adminPool };
    },
    close,
  };
}

/** Known methods: another one would be a label value chosen by a client. */
const methods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** Close codes of the protocol and of this server; clients can send others. */
const closeCodes: readonly number[] = [
  1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1013, 4400, 4401, 4408, 4409, 4429,
];

/** Adds the metrics of requests to an observer. */
function measure(observer: Observer, metrics: Metrics): Observer {
  const find = metrics.histogram(
    'inkwell_http_request_duration_seconds',
    'Requests that are over.',
    ['method', 'route', 'status'],
  );
  let inFlight = 0;
  metrics.gauge('inkwell_http_requests_in_flight', 'Requests that are not over.', () => inFlight);
  const countClose = metrics.counter(
    'inkwell_websocket_closes_total',
    'WebSockets that are closed, by the code.',
    'code',
  );
  return {
    begin: () => void (inFlight += 1),
    end(finished) {
      inFlight -= 1;
      const { request, status, milliseconds } = finished;
      const method = methods.includes(request.method) ? request.method : 'other';
      find(method, request.endpoint?.route ?? 'none', String(status)).add(milliseconds / 1000);
      observer.end(finished);
    },
    openSession(handshake) {
      const close = observer.openSession(handshake);
      return (code) => {
        countClose(closeCodes.includes(code) ? `${code}` : 'other');
        close(code);
      };
    },
  };
}

function declareGraphql(metrics: Metrics): GraphqlWatch {
  const find = metrics.histogram(
    'inkwell_graphql_operation_duration_seconds',
    'GraphQL operations that have run, and subscriptions that have begun.',
    ['type', 'outcome'],
  );
  const countKept = metrics.counter(
    'inkwell_graphql_kept_answers_total',
    'GraphQL requests that got a cached response: no operation ran.',
    'type',
  );
  return {
    operation: (type, outcome, milliseconds) => find(type, outcome).add(milliseconds / 1000),
    cacheHit: () => countKept('query'),
    dropped: metrics.counter(
      'inkwell_dropped_subscribers_total',
      'Subscribers that the server has ended, by the reason.',
      'reason',
    ),
  };
}

function declareStore(metrics: Metrics): StoreWatch {
  const find = metrics.histogram(
    'inkwell_store_call_duration_seconds',
    'Calls of a durable store.',
    ['area', 'kind'],
  );
  return (area, kind, milliseconds) => find(area, kind).add(milliseconds / 1000);
}

/** Returns a function that stops measuring. */
function declareReadings({ gauge }: Metrics, readings: Readings): () => void {
  const { pool, graphql, connections, memory } = readings;
  if (connections)
    gauge('inkwell_connections', 'Open connections, WebSockets among them.', connections);
  gauge('inkwell_websockets', 'Open WebSockets.', () => graphql().webSockets);
  gauge('inkwell_event_streams', 'Open event streams.', () => graphql().eventStreams);
  gauge('inkwell_subscriptions', 'Active subscriptions.', () => graphql().subscriptions);
  gauge('inkwell_waiting_bytes', 'Bytes that wait in memory.', () => pool.bytes);
  gauge('inkwell_waiting_bytes_max', 'How many may wait.', () => pool.bytesMax);
  if (memory) {
    gauge('inkwell_resident_memory_bytes', 'Resident memory.', () => memory().rss);
    gauge('inkwell_heap_used_bytes', 'Heap that is used.', () => memory().heapUsed);
  }
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  gauge('inkwell_event_loop_delay_seconds', 'Delay of the event loop, 99th percentile.', () => {
    const seconds = delay.percentile(99) / 1e9;
    delay.reset();
    return seconds;
  });
  return () => void delay.disable();
}
