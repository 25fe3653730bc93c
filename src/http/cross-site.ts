/** Requests that a browser sends for a page of another site (R27). */

import { AppError } from '../errors.ts';

/** What is asked of a request. */
export interface Sender {
  readonly host: string;
  header(name: string): string | undefined;
}

/** Throws `foreign_origin` where the page is, by the browser's word, neither ours nor allowed. */
export function refuseForeign(request: Sender, allowedOrigins: readonly string[]): void {
  if (isForeign(request, allowedOrigins)) {
    throw new AppError('foreign_origin', 'Pages of other sites may not send this request.');
  }
}

/** True where a browser sent it for a foreign page. Other clients name no origin: never true. */
function isForeign(request: Sender, allowedOrigins: readonly string[]): boolean {
  const origin = request.header('origin');
  if (origin === undefined) return request.header('sec-fetch-site') === 'cross-site';
  if (allowedOrigins.includes(origin)) return false;
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
