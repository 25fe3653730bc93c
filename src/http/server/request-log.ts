/**
 * Logs finished requests: none, those that failed or took long, or all. Requests refused for
 * security are always logged.
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
      // Copied, so that the headers are not kept until the socket closes.
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
  // Sessions are logged only if all requests are.
}

/** Limit for headers whose value the client chooses. */
const givenLengthMax = 128;

function cut(given: string | undefined): string | undefined {
  return given?.slice(0, givenLengthMax);
}

/** The route is logged, not the path, which may contain private data. */
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

/** Rounded to three decimals. */
function toMs(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
