/** A page and its files, all of which ship with the program: the browser UI (Spec §4.1, R32). */

import { emptyReply, type Handler } from '../http/message.ts';
import { createStaticFiles } from '../http/static-files.ts';

export interface PageOptions {
  /** The path of the page, with the slash at its end. */
  readonly root: string;
  /** Where the build put the files; absolute. Read at the first request, not at start. */
  readonly folder: string;
}

export type PageHandlers = Readonly<Record<'redirect' | 'file', Handler>>;

/**
 * Nothing is loaded from another host and nothing is sent to one; no script but the shipped files
 * runs, no page may frame this one. A page writes style elements of its own, hence `unsafe-inline`
 * for styles alone. `connect-src 'self'` covers the WebSocket of the same host (CSP 3 §6.7.2.8).
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers: readonly string[] = [
  ['Content-Security-Policy', policy],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
].flat();

export function createPageHandlers({ root, folder }: PageOptions): PageHandlers {
  const files = createStaticFiles({ folder, headers });
  return {
    /** Without the slash: the page's relative addresses need the slash. */
    redirect: (request) => {
      const query = request.query === '' ? '' : `?${request.query}`;
      return emptyReply(308, ['Location', `${root}${query}`]);
    },
    /** Everything under `/graphql-ui/`. */
    file: (request) => {
      const name = request.params['*'] ?? '';
      return files(request, name === '' ? 'index.html' : name);
    },
  };
}
