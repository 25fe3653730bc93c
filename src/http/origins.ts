/**
 * What pages of other origins may do. They may read responses where their origin is allowed
 * (cross-origin resource sharing, Fetch §3.3), and never get the browser's credentials for this
 * host: a page sets the token header itself. Requests that a browser sends for a page of another
 * site are refused (R27).
 */

import { AppError } from '../errors.ts';
import { addVary, emptyResponse, type HttpResponse, type HttpRequest } from './message.ts';

export type Cors = NonNullable<ReturnType<typeof createCors>>;

/** A page can read only these response headers and the CORS-safelisted ones. */
const exposed = [
  'Location, ETag, Link, Retry-After, X-Request-Id, Content-Disposition, Content-Range',
  'Preference-Applied',
  'Idempotency-Replayed, Accept-Ranges, WWW-Authenticate, Allow, Accept-Patch',
].join(', ');

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

const privateResponse = emptyResponse(204, [
  ...preflightResponse.headers,
  'Access-Control-Allow-Private-Network',
  'true',
]);

/** Returns undefined if no origin is allowed; responses then have no CORS headers. */
export function createCors(allowedOrigins: readonly string[]) {
  if (allowedOrigins.length === 0) return undefined;
  const isOpen = allowedOrigins.includes('*');
  return {
    /** Adds the response headers for a request with this `Origin`. */
    addTo(headers: string[], origin = ''): void {
      if (isAllowed(allowedOrigins, origin)) {
        headers.push('Access-Control-Allow-Origin', isOpen ? '*' : origin);
        headers.push('Access-Control-Expose-Headers', exposed);
      }
      // A cache must not reuse a response for another origin.
      if (!isOpen) addVary(headers, 'Origin');
    },
    /** The response to a preflight from an allowed origin; undefined for any other OPTIONS. */
    preflight(request: Pick<HttpRequest, 'header'>): HttpResponse | undefined {
      const isPreflight = request.header('access-control-request-method') !== undefined;
      const mayAsk = isPreflight && isAllowed(allowedOrigins, request.header('origin'));
      if (!mayAsk) return undefined;
      // Chromium asks before a page of the Internet reaches a private network.
      return request.header('access-control-request-private-network') === undefined
        ? preflightResponse
        : privateResponse;
    },
  };
}

type Sender = Pick<HttpRequest, 'host' | 'header'>;

/** Origins, in addition to the host of the request, whose pages may send forms and open sockets. */
export interface OwnOrigins {
  /** See `isAllowed`. */
  readonly allowedOrigins: readonly string[];
  /** An origin, or empty. Own pages have this origin behind a proxy that changes `Host`. */
  readonly publicUrl: string;
}

/** Throws `foreign_origin` if the request comes from a page of an origin that is not allowed. */
export function refuseForeign(request: Sender, own: OwnOrigins): void {
  if (isForeign(request, own)) {
    throw new AppError('foreign_origin', 'Pages of other sites may not send this request.');
  }
}

/**
 * True if a browser sent it for a foreign page. Other clients send none of these headers. The
 * browser knows whose page it shows: `Origin` is `null` for a page of this host that sends no
 * referrer, and a proxy may have changed `Host`. Browsers do not tell it to a host without TLS.
 */
function isForeign(request: Sender, { allowedOrigins, publicUrl }: OwnOrigins): boolean {
  // Some clients that are no browser send an empty one.
  const origin = request.header('origin') || undefined;
  if (isAllowed(allowedOrigins, origin) || (publicUrl !== '' && origin === publicUrl)) return false;
  const site = request.header('sec-fetch-site');
  if (site) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !isOnHost(origin, request.host);
}

/** The scheme and the first of several labels of an origin. */
const firstLabel = /^([a-z][a-z0-9+.-]*:\/\/)[^./:]+(?=\.)/;

/** `*` allows every origin, `https://*.example.org` those with one label in its place. */
function isAllowed(allowedOrigins: readonly string[], origin: string | undefined): boolean {
  if (allowedOrigins.includes('*')) return true;
  if (origin === undefined) return false;
  const pattern = origin.replace(firstLabel, '$1*');
  return allowedOrigins.includes(origin) || allowedOrigins.includes(pattern);
}

/**
 * The scheme is ignored, because a proxy may use another one. URL normalises letter case and
 * default port.
 */
function isOnHost(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  const own = `${url.protocol}//${host}`;
  return URL.canParse(own) && new URL(own).host === url.host;
}
