/**
 * Which requests are logged when they are over: none, those that failed or took long, or all. What
 * was refused for the sake of security always is.
 */

import type { Config } from '../../config.ts';
import type { CountedLog, Log, LogFacts } from '../../log.ts';
import { createClientAddress } from '../client-address.ts';
import type { Finished, Observe } from './observe.ts';

export interface RequestLogDeps {
  readonly config: Pick<Config, 'logRequests' | 'trustedProxies'>;
  readonly log: Log;
  readonly security: CountedLog;
}

const slowMilliseconds = 1_000;

export function createRequestLog(deps: RequestLogDeps): Observe {
  const { config, log, security } = deps;
  const clientAddress = createClientAddress(config.trustedProxies);
  const isAll = config.logRequests === 'all';
  const isNone = config.logRequests === 'none';
  return (finished) => {
    const { request, status, waitedMilliseconds } = finished;
    if (status === 429) security('login refused', { client: clientAddress(request) });
    if (status === 403) {
      security('origin refused', { client: clientAddress(request), origin: originOf(request) });
    }
    const isFault = status >= 500 || waitedMilliseconds >= slowMilliseconds;
    if (isNone || !(isFault || isAll)) return;
    log(isFault ? 'warn' : 'info', 'request', toFacts(finished, clientAddress(request)));
  };
}

function originOf(request: Finished['request']): string | undefined {
  return request.header('origin')?.slice(0, givenLengthMax);
}

/** Of a header that a client fills as it likes. */
const givenLengthMax = 128;

/** The path is not among them: the route is, and a path may hold what nobody should read. */
function toFacts({ request, status, bytes, milliseconds }: Finished, client: string): LogFacts {
  return {
    method: request.method,
    route: request.endpoint?.route,
    status,
    ms: Math.round(milliseconds * 1000) / 1000,
    bytes,
    requestId: request.id,
    client,
    traceparent: request.header('traceparent')?.slice(0, givenLengthMax),
    givenRequestId: request.header('x-request-id')?.slice(0, givenLengthMax),
  };
}
