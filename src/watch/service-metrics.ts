/**
 * Every metric of the service. This file defines the counters; the other rooms call them where an
 * event happens. The values of labels come from the program, never from a client, and are few.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Config } from '../config.ts';
import { graphqlCodes } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import { methods } from '../http/server/incoming.ts';
import type { Finished } from '../http/server/observe.ts';
import type { LogFacts } from '../log.ts';
import type { MemoryPool } from '../memory-pool.ts';
import type { Uploads } from '../store/files/uploads.ts';
import { createMetrics, type Metrics } from './prometheus.ts';

/** The sources of the metrics that are read when metrics are requested. */
export interface Readings {
  /** The memory of requests and responses. */
  readonly pool: MemoryPool;
  readonly graphql: () => Readonly<Record<'webSockets' | 'eventStreams' | 'subscriptions', number>>;
  readonly uploads: () => Pick<Uploads, 'list'>;
  /** What `/readyz` knows of the store. */
  readonly isStoreUp: () => Promise<boolean>;
  /** What only the process knows: its version, start, connections and memory. */
  readonly process?: ProcessReadings | undefined;
}

export interface ProcessReadings {
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** The number of open connections to the main port. */
  readonly connections: () => number;
  readonly memory: () => { readonly rss: number; readonly heapUsed: number };
  /** Seconds of processor time, of user and system. */
  readonly cpuSeconds: () => number;
  /** Not a number where the system does not tell. */
  readonly openFiles: () => number;
}

type OperationType = 'query' | 'mutation' | 'subscription' | 'unknown';
/** `refused`: the operation did not run; `error`: the result has errors beside its data. */
export type Outcome = 'ok' | 'error' | 'refused';
/**
 * `slow_consumer`: the client does not read; `overflow`: events came faster than they could be
 * executed; `failed`: an internal error.
 */
const dropReasons = ['slow_consumer', 'overflow', 'failed'] as const;

/**
 * Why a token was refused: its own fault (`auth/jwt.ts`); `account`: it was removed, or has another
 * password; `session`: the token is valid, but too long after its login to be refreshed.
 */
const tokenRefusals = ['expired', 'signature', 'malformed', 'account', 'session'] as const;
export type TokenRefusal = (typeof tokenRefusals)[number];

/** A statement that reads, or a transaction that writes. */
type StatementKind = 'read' | 'write';

export type ServiceMetrics = ReturnType<typeof createServiceMetrics>;
/** The counters that GraphQL calls. */
export type GraphqlMetrics = Pick<
  ServiceMetrics,
  'operation' | 'graphqlError' | 'responseFromCache' | 'subscriberDropped'
>;

/** Events that are logged for the sake of security, whatever LOG_REQUESTS says. */
const securityEvents = [
  'login failed',
  'login refused',
  'comment refused',
  'origin refused',
] as const;
type SecurityEvent = (typeof securityEvents)[number];
export type LogSecurity = (event: SecurityEvent, facts: LogFacts) => void;

/** Close codes of the protocol and of this server; clients can send others. */
const closeCodes = [
  1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1013, 4400, 4401, 4403, 4408, 4409,
  4429,
].map(String);

export function createServiceMetrics(
  config: Pick<Config, 'storedFilesMax' | 'storedBytesMax' | 'connectionsMax'>,
  readings: Readings,
) {
  const metrics = createMetrics();
  const operation = metrics.histogram(
    'inkwell_graphql_operation_duration_seconds',
    'Duration of GraphQL operations, and of the start of subscriptions.',
    ['type', 'outcome'],
  );
  const countCached = metrics.counter(
    'inkwell_graphql_cached_responses_total',
    'GraphQL requests answered from the response cache.',
    { label: 'type', values: ['query'] },
  );
  const statement = metrics.histogram(
    'inkwell_store_statement_duration_seconds',
    'Duration of read statements and write transactions in the database.',
    ['kind'],
  );
  const readStore = declareStore(metrics, config, readings);
  declareReadings(metrics, readings);

  return {
    ...countRequests(metrics),
    securityEvent: metrics.counter(
      'inkwell_security_events_total',
      'Failed and refused logins, and refused comments and origins.',
      { label: 'event', values: securityEvents },
    ),
    tokenRefused: metrics.counter(
      'inkwell_refused_tokens_total',
      'Refused access tokens, by reason.',
      { label: 'reason', values: tokenRefusals },
    ),
    /** An operation has run, or a subscription has started. `unknown`: an invalid document. */
    operation: (type: OperationType, outcome: Outcome, milliseconds: number): void =>
      operation(milliseconds, type, outcome),
    /** A client is told of an error, whatever the HTTP status. */
    graphqlError: metrics.counter(
      'inkwell_graphql_errors_total',
      'Errors in GraphQL results, by code.',
      { label: 'code', values: graphqlCodes },
    ),
    responseFromCache: () => countCached('query'),
    /** The server has ended a subscription, or its socket or stream. */
    subscriberDropped: metrics.counter(
      'inkwell_dropped_subscribers_total',
      'Subscriptions ended by the server, by reason.',
      { label: 'reason', values: dropReasons },
    ),
    statement: (kind: StatementKind, milliseconds: number): void => statement(milliseconds, kind),
    /** `GET /metrics`. */
    handler: async (): Promise<HttpResponse> => {
      await readStore();
      const headers = ['Content-Type', 'text/plain; version=0.0.4; charset=utf-8'];
      return { status: 200, headers, body: metrics.toText() };
    },
    /** Stops measuring the event loop. */
    close: measureDelay(metrics),
  };
}

/** Declares metrics of the store. Call the returned function before the metrics are read. */
function declareStore(
  { gauge }: Metrics,
  config: Pick<Config, 'storedFilesMax' | 'storedBytesMax' | 'connectionsMax'>,
  { isStoreUp, uploads }: Readings,
): () => Promise<void> {
  const { storedFilesMax, storedBytesMax, connectionsMax } = config;
  let stored = notKnown;
  let isUp = true;
  gauge('inkwell_store_up', '1 if the store responds.', () => Number(isUp));
  gauge('inkwell_stored_files', 'Stored files.', () => stored.files);
  gauge('inkwell_stored_bytes', 'Bytes of stored files.', () => stored.bytes);
  gauge('inkwell_stored_files_max', 'Limit of stored files.', () => storedFilesMax);
  gauge('inkwell_stored_bytes_max', 'Limit of these bytes.', () => storedBytesMax);
  gauge('inkwell_connections_max', 'Limit of connections.', () => connectionsMax);
  return async () => {
    isUp = await isStoreUp();
    stored = await countStored(uploads()).catch(() => notKnown);
  };
}

const notKnown = { files: Number.NaN, bytes: Number.NaN };

/** Rejects if the index of stored files cannot be read. */
async function countStored(uploads: Pick<Uploads, 'list'>): Promise<typeof notKnown> {
  const files = await uploads.list();
  return { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}

function countRequests(metrics: Metrics) {
  const duration = metrics.histogram(
    'inkwell_http_request_duration_seconds',
    'Duration of finished requests.',
    ['method', 'route', 'status'],
  );
  let inFlight = 0;
  metrics.gauge('inkwell_http_requests_in_flight', 'Requests in progress.', () => inFlight);
  const countClose = metrics.counter(
    'inkwell_websocket_closes_total',
    'Closed WebSockets, by close code.',
    { label: 'code', values: [...closeCodes, 'other'] },
  );
  return {
    requestBegan: () => void (inFlight += 1),
    /** Another method would be a label value chosen by a client. */
    requestEnded({ request: { method, endpoint }, status, milliseconds }: Finished) {
      inFlight -= 1;
      const known = methods.includes(method) ? method : 'other';
      duration(milliseconds, known, endpoint?.route ?? 'none', String(status));
    },
    webSocketClosed(code: number) {
      countClose(closeCodes.includes(`${code}`) ? `${code}` : 'other');
    },
  };
}

function declareReadings({ add, gauge }: Metrics, { pool, graphql, process }: Readings): void {
  if (process !== undefined) {
    const { version, startedAt, connections, memory, cpuSeconds, openFiles } = process;
    const build = `inkwell_build_info{version="${version}"} 1`;
    add('inkwell_build_info', ['gauge', 'Version of the program.'], () => [build]);
    const start = Math.floor(startedAt / 1000);
    gauge('process_start_time_seconds', 'Start time, in seconds since 1970.', () => start);
    gauge('inkwell_connections', 'Open connections, including WebSockets.', connections);
    gauge('process_resident_memory_bytes', 'Resident memory.', () => memory().rss);
    gauge('process_open_fds', 'Open file descriptors.', openFiles);
    add('process_cpu_seconds_total', ['counter', 'Processor time.'], () => [
      `process_cpu_seconds_total ${cpuSeconds()}`,
    ]);
    gauge('inkwell_heap_used_bytes', 'Used heap.', () => memory().heapUsed);
  }
  gauge('inkwell_websockets', 'Open WebSockets.', () => graphql().webSockets);
  gauge('inkwell_event_streams', 'Open event streams.', () => graphql().eventStreams);
  gauge('inkwell_subscriptions', 'Active subscriptions.', () => graphql().subscriptions);
  gauge('inkwell_request_memory_bytes', 'Memory of requests and responses.', () => pool.bytes);
  gauge(
    'inkwell_request_memory_bytes_max',
    'Limit of inkwell_request_memory_bytes.',
    () => pool.bytesMax,
  );
}

/** Returns a function that stops measuring. */
function measureDelay({ gauge }: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  gauge('inkwell_event_loop_delay_seconds', '99th percentile of event loop delay.', () => {
    const seconds = delay.percentile(99) / 1e9;
    delay.reset();
    return seconds;
  });
  return () => void delay.disable();
}
