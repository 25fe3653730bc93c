/**
 * Cross-origin resource sharing (Fetch §3.3): pages of allowed origins may read responses. They
 * never get the browser's credentials for this host: a page sets the token header itself.
 */

import { emptyResponse, type HttpResponse, type HttpRequest } from './message.ts';

export interface Cors {
  /** Adds the response headers for a request with this `Origin`. */
  addTo(headers: string[], origin: string | undefined): void;
  /** The response to a preflight from an allowed origin; undefined for any other OPTIONS. */
  preflight(request: Pick<HttpRequest, 'header'>): HttpResponse | undefined;
}

/** A page can read only these response headers and the CORS-safelisted ones. */
const exposed =
  'Location, ETag, Link, Retry-After, X-Request-Id, Content-Disposition, Content-Range';

/** All methods, not those of the path: a page then gets a 404 or 405, not a failed preflight. */
const preflightResponse = emptyResponse(
  204,
  [
    ['Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE'],
    // The wildcard does not include `Authorization` (Fetch §4.9).
    ['Access-Control-Allow-Headers', '*, Authorization'],
    // Two hours, the maximum in Chromium.
    ['Access-Control-Max-Age', '7200'],
  ].flat(),
);

/** Returns undefined if no origin is allowed; responses then have no CORS headers. */
export function createCors(allowedOrigins: readonly string[]): Cors | undefined {
  if (allowedOrigins.length === 0) return undefined;
  const isOpen = allowedOrigins.includes('*');
  const shared = ['Access-Control-Expose-Headers', exposed];
  const ofOrigin = new Map(
    allowedOrigins.map((origin) => [origin, ['Access-Control-Allow-Origin', origin, ...shared]]),
  );
  const headersFor = (origin = ''): readonly string[] | undefined =>
    ofOrigin.get(isOpen ? '*' : origin);
  return {
    addTo(headers, origin) {
      headers.push(...(headersFor(origin) ?? []));
      if (isOpen) return;
      // A cache must not reuse a response for another origin. Some caches read only the first
      // `Vary`, so there is only one.
      const at = headers.indexOf('Vary') + 1;
      if (at === 0) headers.push('Vary', 'Origin');
      else headers[at] = `Origin, ${headers[at]}`;
    },
    preflight(request) {
      const isPreflight = request.header('access-control-request-method') !== undefined;
      const isAllowed = headersFor(request.header('origin')) !== undefined;
      return isPreflight && isAllowed ? preflightResponse : undefined;
    },
  };
}
