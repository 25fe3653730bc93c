/**
 * `GET /hello` (R32); `GET /`, which describes the service and links to its routes; and the web
 * pages, which the build puts beside the program: the browser UI (Spec §4.1) and the API reference.
 */

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AppError } from '../errors.ts';
import { negotiate } from '../http/media-type.ts';
import {
  type Endpoint,
  emptyResponse,
  type Handler,
  type HttpRequest,
  type HttpResponse,
  textResponse,
} from '../http/message.ts';
import { createStaticFile, createStaticFiles } from '../http/static-files.ts';
import type { RouteOf } from '../router.ts';

const greeting = textResponse(200, 'Hello from Inkwell.');

export const hello: Handler = () => greeting;

type Pages = ReturnType<typeof createPages>;

/** A page for browsers, where the build has it; JSON for others. */
export function createHome(routes: () => readonly RouteOf<Endpoint>[], pages: Pages) {
  const { home: page, graphqlUi, reference, openapi } = pages;
  const links = {
    ui: graphqlUi && '/graphql-ui/',
    reference: reference && '/docs/',
    openapi: openapi && '/openapi.json',
  };
  const types = ['application/json', ...(page ? ['text/html'] : [])];
  const home: Handler = (request) => {
    const type = negotiate(request.header('accept'), types);
    if (type === undefined) throw new AppError('not_acceptable', 'The response is JSON or a page.');
    if (type === 'text/html' && page) return page.serve(request);
    const described = routes().map(({ method, path }) => `${method} ${path}`);
    const body = JSON.stringify({ name: 'Inkwell', ...links, routes: described });
    const headers = ['Content-Type', 'application/json; charset=utf-8', 'Vary', 'Accept'];
    return { status: 200, headers, body };
  };
  return home;
}

/**
 * Content Security Policy: the page loads and sends nothing across origins, runs only its own
 * scripts, and cannot be framed. It creates style elements, hence `unsafe-inline` for styles alone.
 * `connect-src 'self'` includes WebSockets to the same host (CSP 3 §6.7.2.8).
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

/**
 * `folder`: the folder of the program, with a slash at the end. What is not in it is undefined, and
 * has no route: a bundle may stand alone, and a build by `tsc` has no pages.
 */
export function createPages(folder: URL) {
  const pathOf = (name: string): string => fileURLToPath(new URL(name, folder));
  const ifThere = <T>(name: string, create: (path: string) => T): T | undefined =>
    existsSync(pathOf(name)) ? create(pathOf(name)) : undefined;
  return {
    home: ifThere('index.html', (path) => createStaticFile(path, [...headers, 'Vary', 'Accept'])),
    graphqlUi: ifThere('graphql-ui/index.html.gz', (path) =>
      createPageHandlers('/graphql-ui/', dirname(path)),
    ),
    reference: ifThere('reference/index.html.gz', (path) =>
      createPageHandlers('/docs/', dirname(path)),
    ),
    openapi: ifThere('openapi.json', (path) => createStaticFile(path)),
  };
}

/** Reads all files, so that the folder may be replaced. */
export async function loadPages(pages: Pages): Promise<void> {
  for (const page of Object.values(pages)) await page?.load();
}

/** `root`: the path of the page, which ends with a slash. `folder`: the path of its files. */
function createPageHandlers(root: string, folder: string) {
  const files = createStaticFiles(folder, headers);
  return {
    load: files.load,
    /** The relative links of the page need the slash at the end of its path. */
    redirect: (request: HttpRequest): HttpResponse => {
      const query = request.query === '' ? '' : `?${request.query}`;
      return emptyResponse(308, ['Location', `${root}${query}`]);
    },
    /** Everything under `/graphql-ui/`. */
    file: (request: HttpRequest): Promise<HttpResponse> => {
      const name = request.params['*'] ?? '';
      return files.serve(request, name === '' ? 'index.html' : name);
    },
  };
}
