/** Requests that a browser sends for a page of another site (R27). */

import { AppError } from '../errors.ts';
import type { HttpRequest } from './message.ts';

type Sender = Pick<HttpRequest, 'host' | 'header'>;

/** Where pages come from that may send forms and open sockets, beside the host of the request. */
export interface OwnOrigins {
  /** `*` among them: all. */
  readonly allowedOrigins: readonly string[];
  /** An origin, or empty. Behind a proxy that changes `Host`, the service's own pages have it. */
  readonly publicUrl: string;
}

/** Throws `foreign_origin` where the browser says that the page is neither own nor allowed. */
export function refuseForeign(request: Sender, own: OwnOrigins): void {
  if (isForeign(request, own)) {
    throw new AppError('foreign_origin', 'Pages of other sites may not send this request.');
  }
}

/** True where a browser sent it for a foreign page. Other clients name no origin: never true. */
function isForeign(request: Sender, { allowedOrigins, publicUrl }: OwnOrigins): boolean {
  if (allowedOrigins.includes('*')) return false;
  const origin = request.header('origin');
  if (origin === undefined) return request.header('sec-fetch-site') === 'cross-site';
  if (allowedOrigins.includes(origin) || (publicUrl !== '' && origin === publicUrl)) return false;
  if (request.header('sec-fetch-site') === 'cross-site') return true;
  return !isOnHost(origin, request.host);
}

/**
 * The scheme is left out of it: a proxy in front may speak another one. Both go through URL, so
 * that letter case and a default port do not make two hosts of one.
 */
function isOnHost(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  const own = `${url.protocol}//${host}`;
  return URL.canParse(own) && new URL(own).host === url.host;
}
