/**
 * Cross-origin resource sharing (Fetch §3.3): pages of allowed origins may read the answers. What a
 * browser keeps for this host is never shared: a token is a header that the page sets itself.
 */

import { emptyReply, type HttpReply, type HttpRequest } from './message.ts';

export interface Cors {
  /** Adds to an answer's headers what they say to a request with this `Origin`. */
  addTo(headers: string[], origin: string | undefined): void;
  /** The answer to a preflight from an allowed origin; undefined for any other OPTIONS. */
  preflight(request: Pick<HttpRequest, 'header'>): HttpReply | undefined;
}

/** Beside these and a few that are always shown, a page sees no header of an answer. */
const exposed =
  'Location, ETag, Link, Retry-After, X-Request-Id, Content-Disposition, Content-Range';

/** The methods are not those of the path: a page then sees a 404 or 405, not a failed preflight. */
const preflightReply = emptyReply(
  204,
  [
    ['Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE'],
    // The asterisk stands for every name but this one (Fetch §4.9).
    ['Access-Control-Allow-Headers', '*, Authorization'],
    // Two hours: the longest that Chromium takes.
    ['Access-Control-Max-Age', '7200'],
  ].flat(),
);

/** Undefined where no origin is allowed: then nothing is added to any answer. */
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
      // A cache must not give one origin what was said to another, or to none. Some caches read one
      // `Vary` only.
      const at = headers.indexOf('Vary') + 1;
      if (at === 0) headers.push('Vary', 'Origin');
      else headers[at] = `Origin, ${headers[at]}`;
    },
    preflight(request) {
      const isPreflight = request.header('access-control-request-method') !== undefined;
      const isAllowed = headersFor(request.header('origin')) !== undefined;
      return isPreflight && isAllowed ? preflightReply : undefined;
    },
  };
}
