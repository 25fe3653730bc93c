/** `GET /hello` (R32), and `GET /`, which describes the service and links to its routes. */

import { AppError } from '../errors.ts';
import { negotiate } from '../http/media-type.ts';
import { type Endpoint, type Handler, textResponse } from '../http/message.ts';
import type { RouteOf } from '../router.ts';

const greeting = textResponse(200, 'Hello from Inkwell.');

export const hello: Handler = () => greeting;

const links = { ui: '/graphql-ui/', reference: '/docs/', openapi: '/openapi.json' } as const;

/** `page`: the page for browsers, or undefined in a build without pages; others get JSON. */
export function createHome(
  routes: () => readonly RouteOf<Endpoint>[],
  page: Handler | undefined,
): Handler {
  const types = page
    ? (['application/json', 'text/html'] as const)
    : (['application/json'] as const);
  return (request) => {
    const type = negotiate(request.header('accept'), types);
    if (type === undefined) throw new AppError('not_acceptable', 'The response is JSON or a page.');
    if (type === 'text/html' && page) return page(request);
    const described = routes().map(({ method, path }) => `${method} ${path}`);
    const body = JSON.stringify({ name: 'Inkwell', ...(page && links), routes: described });
    const headers = ['Content-Type', 'application/json; charset=utf-8', 'Vary', 'Accept'];
    return { status: 200, headers, body };
  };
}
