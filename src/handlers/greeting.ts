/** `GET /hello` (R32), and `GET /`, which describes the service and links to its routes. */

import { AppError } from '../errors.ts';
import { negotiate } from '../http/media-type.ts';
import { type Endpoint, type Handler, textResponse } from '../http/message.ts';
import type { RouteOf } from '../router.ts';

const greeting = textResponse(200, 'Hello from Inkwell.');

export const hello: Handler = () => greeting;

const links = { ui: '/graphql-ui/', reference: '/docs/', openapi: '/openapi.json' } as const;

const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/** HTML for browsers, JSON for any other client. */
export function createHome(routes: () => readonly RouteOf<Endpoint>[]): Handler {
  return (request) => {
    const type = negotiate(request.header('accept'), ['application/json', 'text/html']);
    if (type === undefined) throw new AppError('not_acceptable', 'The response is JSON or a page.');
    const described = routes().map(({ method, path }) => `${method} ${path}`);
    const headers = ['Content-Type', `${type}; charset=utf-8`, 'Vary', 'Accept'];
    if (type === 'application/json') {
      const body = JSON.stringify({ name: 'Inkwell', ...links, routes: described });
      return { status: 200, headers, body };
    }
    headers.push('Content-Security-Policy', policy);
    return { status: 200, headers, body: toPage(described) };
  };
}

/** The routes are constants of this program, so nothing needs escaping. */
function toPage(routes: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Inkwell</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
code { font-size: .9em } :root { color-scheme: light dark }
</style>
<h1>Inkwell</h1>
<p>A server for a blog: posts and comments, accounts, files, todos and articles, over GraphQL and
REST.</p>
<ul>
<li><a href="${links.ui}">GraphQL in the browser</a></li>
<li><a href="${links.reference}">API reference</a> (<a href="${links.openapi}">OpenAPI</a>)</li>
</ul>
<h2>Routes</h2>
<ul>
${routes.map((route) => `<li><code>${route}</code></li>`).join('\n')}
</ul>
</html>
`;
}
