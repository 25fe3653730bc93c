/**
 * What operators see: the log of finished requests (none, those that failed or took long, or all),
 * security events, which are always logged, and metrics, if enabled.
 */

import { BoundedMap } from '../bounded-map.ts';
import type { Config } from '../config.ts';
import { createClientAddress } from '../http/client-address.ts';
import type { Finished, Observer } from '../http/server/observe.ts';
import { createCountedLog, type deeds, type Log, type LogFacts } from '../log.ts';
import { createServiceMetrics, type LogSecurity, type Readings } from './service-metrics.ts';

export interface MonitorDeps extends Readings {
  readonly log: Log;
  readonly monotonicNow: () => number;
}

const commentsRoute = '/posts/{id}/comments';
const slowMilliseconds = 1_000;

export function createMonitor(config: Config, deps: MonitorDeps) {
  const { monotonicNow } = deps;
  const traces = new BoundedMap<LogFacts>(tracedMax);
  // Each line with the id of a request has its trace, until the request has ended.
  const log: Log = (level, event, facts) => {
    const trace = traces.get(String(facts?.['requestId']));
    deps.log(level, event, trace ? { ...facts, ...trace } : facts);
  };
  // Without ADMIN_PORT nobody can ask for them.
  const metrics = config.adminPort === undefined ? undefined : createServiceMetrics(config, deps);
  const clientAddress = createClientAddress(config.trustedProxies);
  const isAll = config.logRequests === 'all';
  const isNone = config.logRequests === 'none';
  const report = createCountedLog(log, monotonicNow);
  const security: LogSecurity = (event, facts) => {
    metrics?.securityEvent(event);
    // Checking a password bounds failed logins; what is refused at once is counted.
    if (event === 'login failed') log('warn', event, facts);
    else report(event, facts);
  };
  const observer: Observer = {
    begin(request) {
      metrics?.requestBegan();
      const trace = toTrace(request.header('traceparent'));
      if (trace !== undefined) traces.set(request.id, trace);
    },
    end(finished) {
      const { request, status, waitedMilliseconds, error } = finished;
      metrics?.requestEnded(finished);
      logDeeds(finished, log, clientAddress);
      // Also of a request whose client has left. A failed login is reported where it fails,
      // and too many comments where they are counted.
      if (error?.code === 'too_many_requests' && request.endpoint?.route !== commentsRoute) {
        security('login refused', { client: clientAddress(request) });
      } else if (error?.code === 'foreign_origin') {
        // The two are compared: a proxy that changes `Host` is the usual reason.
        const [origin, host] = [cut(request.header('origin')), cut(request.header('host'))];
        security('origin refused', { client: clientAddress(request), origin, host });
      }
      const isFault = status >= 500 || waitedMilliseconds >= slowMilliseconds;
      if (!isNone && (isFault || isAll)) {
        log(isFault ? 'warn' : 'info', 'request', toFacts(finished, clientAddress(request)));
      }
      if (request.header('traceparent') !== undefined) traces.delete(request.id);
    },
    openSession(handshake) {
      // Copied, so that the headers are not kept until the socket closes.
      const facts = { requestId: handshake.id, client: clientAddress(handshake) };
      const startedAt = performance.now();
      return (code) => {
        metrics?.webSocketClosed(code);
        const ms = toMs(performance.now() - startedAt);
        if (isAll) log('info', 'websocket closed', { code, ms, ...facts });
      };
    },
  };
  return { observer, security, metrics, log };
}

/** Requests in progress that belong to a trace; a client can send several at a time. */
const tracedMax = 10_000;

/** W3C Trace Context: `00-<trace id>-<span id>-<flags>`. */
const traceparentPattern = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-/;

/** The members have the names that logs of OpenTelemetry have. */
function toTrace(traceparent: string | undefined): LogFacts | undefined {
  if (traceparent === undefined) return undefined;
  const [, trace_id, span_id] = traceparentPattern.exec(traceparent) ?? [];
  return trace_id === undefined ? undefined : { trace_id, span_id };
}

const writes: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE'];
const deedOf: ReadonlyMap<string | undefined, (typeof deeds)[number]> = new Map([
  ['/auth/login', 'login'],
  ['/auth/refresh', 'refresh'],
]);

/**
 * One line for each record that was changed over REST, for each login, its renewal, and for what an
 * account may not do (R53), also if the client has left; none for what was done before under its
 * key (R40). GraphQL has one for each mutation (`graphql/schema/mutations.ts`).
 */
function logDeeds(
  { request, madeStatus, headers = [], error }: Finished,
  log: Log,
  clientAddress: (request: Finished['request']) => string,
): void {
  const { account, method, endpoint, params = {}, id: requestId } = request;
  const isRefused = error?.code === 'forbidden';
  const isDone = madeStatus < 300 && writes.includes(method) && endpoint?.route !== '/graphql';
  if (!isRefused && (!isDone || headers.includes('Idempotency-Replayed'))) return;
  const at = headers.indexOf('Location');
  // Of a comment that is added, the path has the id of its post.
  const made = at < 0 ? undefined : headers[at + 1]?.split('/').at(-1);
  const named = made ?? params['id']?.toLowerCase() ?? params['name']?.normalize('NFC');
  const event = isRefused ? 'refused' : (deedOf.get(endpoint?.route) ?? 'change');
  const action = `${method} ${endpoint?.route}`;
  const client = clientAddress(request);
  for (const id of request.changed ?? [named]) {
    log(isRefused ? 'warn' : 'info', event, { account, client, action, id, requestId });
  }
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
