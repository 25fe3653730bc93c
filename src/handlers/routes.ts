/** Every route, in the order of the specification, with its wrappers and options. */

import type { Endpoint, Handler } from '../http/message.ts';
import type { RouteOf } from '../router.ts';
import { createAccountHandlers } from './accounts.ts';
import { createArticleHandlers } from './articles.ts';
import { createCommentHandlers } from './comments.ts';
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
const multipart = { produces: 'multipart/form-data' } as const;

export function createRoutes(deps: RouteDeps): readonly Route[] {
  const { graphql, pages, writing, reading, readingAs } = deps;
  const posts = createPostHandlers(deps);
  const comments = createCommentHandlers(deps);
  const accounts = createAccountHandlers(deps);
  const files = createFileHandlers(deps);
  const todos = createTodoHandlers(deps);
  const articles = createArticleHandlers(deps);
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
    route('PATCH', '/posts/{id}', { handler: writing(posts.patch) }),
    route('DELETE', '/posts/{id}', { handler: writing(posts.remove) }),
    route('GET', '/posts/{id}/comments', { handler: readingAs(comments.list), ...json }),
    route('POST', '/posts/{id}/comments', { handler: writing(comments.add) }),
    route('GET', '/comments/{id}', { handler: readingAs(comments.find), ...json }),
    route('DELETE', '/comments/{id}', { handler: writing(comments.remove) }),
    // Spec §4.3
    route('POST', '/auth/login', { handler: accounts.login }),
    route('POST', '/auth/refresh', { handler: accounts.refresh }), // R42
    route('GET', '/profile', { handler: accounts.profile, ...json }),
    // Spec §4.4
    route('POST', '/api/multiparts/simple', { handler: writing(files.uploadSimple) }),
    route('POST', '/api/multiparts/list', { handler: writing(files.uploadList) }),
    route('GET', '/api/multiparts', { handler: reading(files.download), ...multipart }),
    route('GET', '/api/multiparts/{name}', { handler: reading(files.find) }),
    route('DELETE', '/api/multiparts/{name}', { handler: writing(files.remove) }),
    // Spec §4.5
    route('GET', '/api/todos', { handler: reading(todos.list), ...json }),
    route('POST', '/api/todos', { handler: writing(todos.create) }),
    route('GET', '/api/todos/{id}', { handler: reading(todos.find), ...json }),
    route('PATCH', '/api/todos/{id}', { handler: writing(todos.patch) }),
    route('DELETE', '/api/todos/{id}', { handler: writing(todos.remove) }),
    // Spec §4.6
    route('GET', '/api/articles', { handler: reading(articles.list), ...json }),
    route('GET', '/api/articles/{id}', { handler: reading(articles.find), ...json }),
    route('POST', '/api/articles', { handler: writing(articles.create) }),
    route('PATCH', '/api/articles', { handler: writing(articles.patchAll) }),
    route('PATCH', '/api/articles/{id}', { handler: writing(articles.patchOne) }),
    // R12: `Location` of a new article points here.
    route('GET', '/articles/{id}', { handler: reading(articles.redirect) }),
    // Not in the specification (R35)
    route('GET', '/files', { handler: reading(createFileList(deps)), ...json }),
    route('GET', '/files/{name}', { handler: reading(files.show) }),
    route('GET', '/', { handler: createHome(() => routes, pages) }),
    ...(pages.openapi ? [route('GET', '/openapi.json', { handler: pages.openapi, ...json })] : []),
    ...pageRoutes('/docs', pages.reference),
    ...createAdminRoutes(deps.health),
  ];
  return routes;
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
  return { method, path, endpoint: { ...endpoint, route: path } };
}
