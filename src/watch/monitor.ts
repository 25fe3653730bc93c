/**
 * What operators see: the log of finished requests (none, those that failed or took long, or all),
 * security events, which are always logged, and metrics, if enabled.
 */

import { BoundedMap } from '../bounded-map.ts';
import type { Config } from '../config.ts';
import { createClientAddress } from '../http/client-address.ts';
import type { Finished, Observer } from '../http/server/observe.ts';
import { createCountedLog, type Log, type LogFacts } from '../log.ts';
import { createServiceMetrics, type LogSecurity, type Readings } from './service-metrics.ts';

export interface MonitorDeps extends Readings {
  readonly log: Log;
  /** Log of requests when LOG_REQUESTS is `all`: it has no limit on lines per second. */
  readonly requestLog?: Log | undefined;
  readonly monotonicNow: () => number;
}

const slowMilliseconds = 1_000;

export function createMonitor(config: Config, deps: MonitorDeps) {
  const { monotonicNow } = deps;
  const traces = createTraces();
  const log = traces.addTo(deps.log);
  const requestLog = deps.requestLog ? traces.addTo(deps.requestLog) : log;
  // Without ADMIN_PORT nobody can ask for them.
  const metrics = config.adminPort === undefined ? undefined : createServiceMetrics(config, deps);
  const clientAddress = createClientAddress(config.trustedProxies);
  const isAll = config.logRequests === 'all';
  const isNone = config.logRequests === 'none';
  const report = createCountedLog(log, monotonicNow);
  const security: LogSecurity = (event, facts) => {
    metrics?.securityEvent(event);
    report(event, facts);
  };
  const observer: Observer = {
    begin(request) {
      metrics?.requestBegan();
      traces.begin(request);
    },
    end(finished) {
      const { request, status, waitedMilliseconds, error } = finished;
      metrics?.requestEnded(finished);
      logChange(finished, log);
      // Also of a request whose client has left. A failed login is reported where it fails.
      if (error?.code === 'too_many_requests') {
        security('login refused', { client: clientAddress(request) });
      } else if (error?.code === 'foreign_origin') {
        // The two are compared: a proxy that changes `Host` is the usual reason.
        const [origin, host] = [cut(request.header('origin')), cut(request.header('host'))];
        security('origin refused', { client: clientAddress(request), origin, host });
      }
      const isFault = status >= 500 || waitedMilliseconds >= slowMilliseconds;
      if (!isNone && (isFault || isAll)) {
        requestLog(isFault ? 'warn' : 'info', 'request', toFacts(finished, clientAddress(request)));
      }
      traces.end(request);
    },
    openSession(handshake) {
      // Copied, so that the headers are not kept until the socket closes.
      const facts = { requestId: handshake.id, client: clientAddress(handshake) };
      const startedAt = performance.now();
      return (code) => {
        metrics?.webSocketClosed(code);
        const ms = toMs(performance.now() - startedAt);
        if (isAll) requestLog('info', 'websocket closed', { code, ms, ...facts });
      };
    },
  };
  return { observer, security, metrics, log };
}

/** Requests in progress that belong to a trace; a client can send several at a time. */
const tracedMax = 10_000;

/**
 * Adds the trace of a request (W3C Trace Context: `00-<trace id>-<span id>-<flags>`) to each line
 * of the log with its id, until the request has ended.
 */
function createTraces() {
  const traces = new BoundedMap<LogFacts>(tracedMax);
  return {
    addTo:
      (log: Log): Log =>
      (level, event, facts) => {
        const trace = traces.get(String(facts?.['requestId']));
        log(level, event, trace ? { ...facts, ...trace } : facts);
      },
    begin(request: Finished['request']): void {
      const given = request.header('traceparent');
      const trace = given === undefined ? undefined : toTrace(given);
      if (trace !== undefined) traces.set(request.id, trace);
    },
    end(request: Finished['request']): void {
      if (request.header('traceparent') !== undefined) traces.delete(request.id);
    },
  };
}

/** The members have the names that logs of OpenTelemetry have. */
function toTrace(traceparent: string): LogFacts | undefined {
  const [, trace_id, span_id] = traceparentPattern.exec(traceparent) ?? [];
  return trace_id === undefined ? undefined : { trace_id, span_id };
}

const traceparentPattern = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-/;

/**
 * One line for each change over REST by an account, also if its client has left; none for what was
 * done before under its key (R40). GraphQL has one for each mutation.
 */
function logChange({ request, madeStatus, headers = [] }: Finished, log: Log): void {
  const { account, method, endpoint, params = {} } = request;
  const isRead = method === 'GET' || method === 'HEAD';
  if (account === undefined || isRead || madeStatus >= 300) return;
  // A new token changes no record.
  if (endpoint?.route === '/graphql' || endpoint?.route === '/auth/refresh') return;
  if (headers.includes('Idempotency-Replayed')) return;
  const at = headers.indexOf('Location');
  const location = at < 0 ? undefined : headers[at + 1];
  const id = params['id'] ?? params['name'] ?? location?.split('/').at(-1);
  log('info', 'change', {
    account,
    action: `${method} ${endpoint?.route}`,
    id,
    requestId: request.id,
  });
}

/** Limit for headers whose value the client chooses. */
const givenLengthMax = 128;

function cut(given: string | undefined): string | undefined {
  return given?.slice(0, givenLengthMax);
}

/** The route is logged, not the path, which may contain private data. */
function toFacts(
  { request, status, bytes, milliseconds, error }: Finished,
  client: string,
): LogFacts {
  return {
    method: request.method === '' ? undefined : request.method,
    route: request.endpoint?.route,
    status,
    code: error?.code,
    // Which store or disk is full, or away.
    reason: status > 500 ? error?.message : undefined,
    ms: toMs(milliseconds),
    bytes,
    requestId: request.id,
    client,
    ...request.logFacts,
    account: request.account,
    givenRequestId: cut(request.header('x-request-id')),
  };
}

/** Rounded to three decimals. */
function toMs(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
