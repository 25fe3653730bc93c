/** Every route, in the order of the specification, with its wrappers and options. */

import { AppError } from '../errors.ts';
import { preconditionFailed } from '../http/etag.ts';
import type { Endpoint, Handler } from '../http/message.ts';
import type { RouteOf } from '../router.ts';
import { createAccountHandlers } from './accounts.ts';
import { createArticleHandlers } from './articles.ts';
import { jsonPatchType, mergePatchType } from './changes.ts';
import { createCommentHandlers, createModerationHandlers } from './comments.ts';
import { createFileHandlers } from './files.ts';
import { createFileList } from './file-list.ts';
import type { GraphqlHandlers } from './graphql.ts';
import type { createHealthHandlers } from './health.ts';
import type { HandlerDeps } from './deps.ts';
import { createHome, type createPages, hello } from './pages.ts';
import { createPostHandlers } from './posts.ts';
import { createTodoHandlers } from './todos.ts';

export interface RouteDeps extends HandlerDeps {
  readonly graphql: GraphqlHandlers;
  readonly health: ReturnType<typeof createHealthHandlers>;
  readonly pages: ReturnType<typeof createPages>;
}

export type Route = RouteOf<Endpoint>;

const json = { produces: 'application/json' } as const;
/** Its handler obeys `If-Match` and `If-None-Match`, as those of PUT, PATCH and DELETE do. */
const conditional = { takesConditions: true } as const;
const multipart = { produces: 'multipart/form-data' } as const;
const mergePatch = { acceptPatch: mergePatchType } as const;
const jsonPatch = { acceptPatch: jsonPatchType } as const;
const anyPatch = { acceptPatch: `${jsonPatchType}, ${mergePatchType}` } as const;

export function createRoutes(deps: RouteDeps): readonly Route[] {
  const { graphql, pages, writing, reading, readingAs, run } = deps;
  const posts = createPostHandlers(deps);
  const accounts = createAccountHandlers(deps);
  const files = createFileHandlers(deps);
  const todos = createTodoHandlers(deps);
  const articles = createArticleHandlers(deps);
  const inTurn =
    (handler: Handler): Handler =>
    (request) =>
      run(() => handler(request));
  const routes: readonly Route[] = [
    // Spec §4.1
    route('POST', '/graphql', { handler: graphql.post }),
    route('GET', '/graphql', { handler: graphql.get }),
    route('GET', '/graphql/schema.graphql', { handler: reading(graphql.schema) }),
    ...pageRoutes('/graphql-ui', pages.graphqlUi),
    route('GET', '/hello', { handler: hello, produces: 'text/plain' }),
    // Spec §4.2
    route('GET', '/posts', { handler: readingAs(posts.list), ...json }),
    route('POST', '/posts', { handler: writing(posts.create) }),
    route('GET', '/posts/{id}', { handler: readingAs(posts.find), ...json }),
    route('PUT', '/posts/{id}', { handler: writing(posts.update) }),
    route('PATCH', '/posts/{id}', { handler: writing(posts.patch), ...mergePatch }),
    route('DELETE', '/posts/{id}', { handler: writing(posts.remove) }),
    ...commentRoutes(deps),
    // Spec §4.3
    route('POST', '/auth/login', { handler: accounts.login }),
    route('POST', '/auth/refresh', { handler: accounts.refresh }), // R42
    route('POST', '/auth/password', { handler: accounts.password }), // R51
    route('GET', '/profile', { handler: accounts.profile, ...json }),
    // Spec §4.4
    route('POST', '/api/multiparts/simple', {
      handler: writing(files.uploadSimple),
      ...conditional,
    }),
    route('POST', '/api/multiparts/list', { handler: writing(files.uploadList), ...conditional }),
    route('GET', '/api/multiparts', { handler: reading(inTurn(files.download)), ...multipart }),
    route('GET', '/api/multiparts/{name}', { handler: reading(files.find) }),
    route('DELETE', '/api/multiparts/{name}', { handler: writing(files.remove) }),
    // Spec §4.5
    route('GET', '/api/todos', { handler: reading(todos.list), ...json }),
    route('POST', '/api/todos', { handler: writing(todos.create) }),
    route('GET', '/api/todos/{id}', { handler: reading(todos.find), ...json }),
    route('PATCH', '/api/todos/{id}', { handler: writing(todos.patch), ...mergePatch }),
    route('DELETE', '/api/todos/{id}', { handler: writing(todos.remove) }),
    // Spec §4.6
    route('GET', '/api/articles', { handler: reading(articles.list), ...json }),
    route('GET', '/api/articles/{id}', { handler: reading(articles.find), ...json }),
    route('POST', '/api/articles', { handler: writing(articles.create), ...conditional }),
    route('PATCH', '/api/articles', { handler: writing(articles.patchAll), ...jsonPatch }),
    route('PATCH', '/api/articles/{id}', { handler: writing(articles.patchOne), ...anyPatch }),
    route('DELETE', '/api/articles/{id}', { handler: writing(articles.remove) }),
    ...linkRoutes(deps, articles.redirect),
    // Not in the specification (R35)
    route('GET', '/files', { handler: reading(createFileList(deps)), ...json }),
    route('GET', '/files/{name}', { handler: reading(files.show) }),
    route('GET', '/', { handler: createHome(() => routes, pages) }),
    ...(pages.openapi
      ? [route('GET', '/openapi.json', { handler: pages.openapi.serve, ...json })]
      : []),
    ...pageRoutes('/docs', pages.reference),
    ...createAdminRoutes(deps.health),
  ];
  return routes;
}

function commentRoutes(deps: RouteDeps): readonly Route[] {
  const { writing, commenting, readingAs } = deps;
  const comments = createCommentHandlers(deps);
  const moderation = createModerationHandlers(deps);
  return [
    route('GET', '/posts/{id}/comments', { handler: readingAs(comments.list), ...json }),
    route('POST', '/posts/{id}/comments', { handler: commenting(comments.add) }),
    route('GET', '/comments', { handler: readingAs(moderation.listAll), ...json }),
    route('POST', '/comments/removals', { handler: writing(moderation.removeMany) }),
    route('GET', '/comments/{id}', { handler: readingAs(comments.find), ...json }),
    route('PATCH', '/comments/{id}', { handler: writing(moderation.approve), ...mergePatch }),
    route('DELETE', '/comments/{id}', { handler: writing(comments.remove) }),
  ];
}

/** R12: `Location` of a new article points here, for every method that articles have. */
function linkRoutes({ writing, reading }: RouteDeps, redirect: Handler): readonly Route[] {
  const path = '/articles/{id}';
  return [
    route('GET', path, { handler: reading(redirect) }),
    ...['PATCH', 'DELETE'].map((method) => route(method, path, { handler: writing(redirect) })),
  ];
}

/** None where the program is without that page, as a bundle alone is. */
function pageRoutes(path: string, page: RouteDeps['pages']['reference']): readonly Route[] {
  if (page === undefined) return [];
  return [
    route('GET', path, { handler: page.redirect }),
    route('GET', `${path}/*`, { handler: page.file }),
  ];
}

/** Not in the specification (R35); ADMIN_PORT has these routes, and `/metrics`. */
export function createAdminRoutes(health: RouteDeps['health'], metrics?: Handler) {
  const routes = [
    route('GET', '/livez', { handler: health.live }),
    route('GET', '/readyz', { handler: health.ready }),
  ];
  return metrics ? [...routes, route('GET', '/metrics', { handler: metrics })] : routes;
}

function route(method: string, path: string, endpoint: Endpoint): Route {
  const handler = obeyingOrRefusing(method, endpoint);
  return { method, path, endpoint: { ...endpoint, handler, route: path } };
}

/** As clients name another method than that of the request. */
const methodOverrides = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const;

/**
 * What a header asks that no handler obeys is refused, never ignored (docs/headers.md). A part must
 * not be taken for the whole (R6a, RFC 9110 §14.5). A POST makes what is not there yet: `If-Match`
 * cannot hold (§13.1.1), and `If-None-Match` does.
 */
function obeyingOrRefusing(method: string, { handler, takesConditions }: Endpoint): Handler {
  if (method === 'GET' || method === 'DELETE') return handler;
  const isNew = method === 'POST' && takesConditions !== true;
  return (request) => {
    if (request.header('content-range') !== undefined) {
      const message =
        'Content-Range is for parts, which nothing here takes: send the whole, without it.';
      throw new AppError('malformed_request', message);
    }
    for (const name of methodOverrides) {
      if ((request.header(name)?.toUpperCase() || method) === method) continue;
      const message = `The header ${name} is not obeyed: send the method itself.`;
      throw new AppError('malformed_request', message);
    }
    if (isNew && request.header('if-match') !== undefined) throw preconditionFailed();
    return handler(request);
  };
}
