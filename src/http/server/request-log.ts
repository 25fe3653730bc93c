/**
 * Which requests are logged when they are over: none, those that failed or took long, or all. What
 * was refused for the sake of security always is.
 */

import type { Config } from '../../config.ts';
import type { CountedLog, Log, LogFacts } from '../../log.ts';
import { createClientAddress } from '../client-address.ts';
import type { Finished, Observer } from './observe.ts';

export interface RequestLogDeps {
  readonly config: Pick<Config, 'logRequests' | 'trustedProxies'>;
  readonly log: Log;
  readonly security: CountedLog;
}

const slowMilliseconds = 1_000;

export function createRequestLog(deps: RequestLogDeps): Observer {
  const { config, log, security } = deps;
  const clientAddress = createClientAddress(config.trustedProxies);
  const isAll = config.logRequests === 'all';
  const isNone = config.logRequests === 'none';
  return {
    end(finished) {
      const { request, status, waitedMilliseconds } = finished;
      if (status === 429) security('login refused', { client: clientAddress(request) });
      if (status === 403) {
        const origin = cut(request.header('origin'));
        security('origin refused', { client: clientAddress(request), origin });
      }
      const isFault = status >= 500 || waitedMilliseconds >= slowMilliseconds;
      if (isNone || !(isFault || isAll)) return;
      log(isFault ? 'warn' : 'info', 'request', toFacts(finished, clientAddress(request)));
    },
    openSession(handshake) {
      if (!isAll) return ignore;
      // The headers are not kept for as long as the session lasts.
      const facts = { requestId: handshake.id, client: clientAddress(handshake) };
      const startedAt = performance.now();
      return (code) => {
        const ms = toMs(performance.now() - startedAt);
        log('info', 'websocket closed', { code, ms, ...facts });
      };
    },
  };
}

function ignore(): void {
  // Sessions are logged where all requests are.
}

/** Of a header that a client fills as it likes. */
const givenLengthMax = 128;

function cut(given: string | undefined): string | undefined {
  return given?.slice(0, givenLengthMax);
}

/** The path is not among them: the route is, and a path may hold what nobody should read. */
function toFacts({ request, status, bytes, milliseconds }: Finished, client: string): LogFacts {
  return {
    method: request.method === '' ? undefined : request.method,
    route: request.endpoint?.route,
    status,
    ms: toMs(milliseconds),
    bytes,
    requestId: request.id,
    client,
    traceparent: cut(request.header('traceparent')),
    givenRequestId: cut(request.header('x-request-id')),
  };
}

/** With three decimals. */
function toMs(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
