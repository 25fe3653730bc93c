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
  'Idempotency-Replayed',
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

/** Returns undefined if no origin is allowed; responses then have no CORS headers. */
export function createCors(allowedOrigins: readonly string[]) {
  if (allowedOrigins.length === 0) return undefined;
  const isOpen = allowedOrigins.includes('*');
  const shared = ['Access-Control-Expose-Headers', exposed];
  const ofOrigin = new Map(
    allowedOrigins.map((origin) => [origin, ['Access-Control-Allow-Origin', origin, ...shared]]),
  );
  const headersFor = (origin = ''): readonly string[] | undefined =>
    ofOrigin.get(isOpen ? '*' : origin);
  return {
    /** Adds the response headers for a request with this `Origin`. */
    addTo(headers: string[], origin: string | undefined): void {
      headers.push(...(headersFor(origin) ?? []));
      // A cache must not reuse a response for another origin.
      if (!isOpen) addVary(headers, 'Origin');
    },
    /** The response to a preflight from an allowed origin; undefined for any other OPTIONS. */
    preflight(request: Pick<HttpRequest, 'header'>): HttpResponse | undefined {
      const isPreflight = request.header('access-control-request-method') !== undefined;
      const isAllowed = headersFor(request.header('origin')) !== undefined;
      return isPreflight && isAllowed ? preflightResponse : undefined;
    },
  };
}

type Sender = Pick<HttpRequest, 'host' | 'header'>;

/** Origins, in addition to the host of the request, whose pages may send forms and open sockets. */
export interface OwnOrigins {
  /** `*` allows every origin. */
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

/** True if a browser sent it for a foreign page. Other clients send none of these headers. */
function isForeign(request: Sender, { allowedOrigins, publicUrl }: OwnOrigins): boolean {
  if (allowedOrigins.includes('*')) return false;
  const origin = request.header('origin');
  if (origin === undefined) return request.header('sec-fetch-site') === 'cross-site';
  if (allowedOrigins.includes(origin) || (publicUrl !== '' && origin === publicUrl)) return false;
  if (request.header('sec-fetch-site') === 'cross-site') return true;
  return !isOnHost(origin, request.host);
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
