/** Refuses requests that a browser sends for a page of another site (R27). */

import { AppError } from '../errors.ts';
import type { HttpRequest } from './message.ts';

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
