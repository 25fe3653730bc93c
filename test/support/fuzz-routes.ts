/** One good request of every route: what a fuzzer starts from. */

import { findTarget, graphqlSeeds, legacySocket, modernSocket, text } from './fuzz-graphql.js';
import { field, file, form, get, patch, type Seed, send } from './fuzz-request.js';

const article = {
  title: 'An article',
  author: { givenName: 'A', familyName: 'B' },
  content: 'c',
  tags: ['t', 'u'],
  publishedAt: '2026-01-05T09:00:00.5+02:00[Europe/Paris]',
};
const articlePatch = [
  { op: 'test', path: '/id', value: 1 },
  { op: 'replace', path: '/title', value: 'New' },
  { op: 'add', path: '/tags/-', value: 'x' },
  { op: 'copy', from: '/tags/0', path: '/note' },
  { op: 'move', from: '/note', path: '/content' },
  { op: 'remove', path: '/tags/0' },
];
const listPatch = [{ op: 'replace', path: '/1/author/familyName', value: 'Changed' }];
const merge = { title: 'Merged', author: { givenName: null }, content: 'x', tags: ['a', 'b'] };
const jsonPatch = 'application/json-patch+json';
const mergeType = 'application/merge-patch+json';

/** In the order of the table of routes. */
export const seeds: readonly Seed[] = [
  ...graphqlSeeds.map((seed): Seed => ({ route: 'POST /graphql', status: 200, ...seed })),
  { route: 'GET /graphql', status: 200, make: () => get(findTarget), weight: 2 },
  { route: 'GET /graphql', status: 101, make: modernSocket, weight: 4 },
  { route: 'GET /graphql', status: 101, make: legacySocket, weight: 4 },
  { route: 'GET /graphql/schema.graphql', status: 200, make: () => get('/graphql/schema.graphql') },
  { route: 'GET /graphql-ui', status: 308, make: () => get('/graphql-ui') },
  { route: 'GET /graphql-ui/*', status: 200, make: () => get('/graphql-ui/inkwell.css') },
  { route: 'GET /hello', status: 200, make: () => get('/hello', [['Accept', 'text/plain']]) },
  { route: 'GET /posts', status: 200, make: () => get('/posts', [['Accept', 'application/json']]) },
  { route: 'POST /posts', status: 201, make: () => send('POST', '/posts', text), weight: 2 },
  {
    route: 'GET /posts/{id}',
    status: 200,
    make: ({ random, posts }) => get(`/posts/${random.pick(posts)}`),
  },
  {
    route: 'PUT /posts/{id}',
    status: 204,
    make: ({ random, posts }) => send('PUT', `/posts/${random.pick(posts)}`, text),
  },
  {
    route: 'PATCH /posts/{id}',
    status: 204,
    make: ({ random, posts }) =>
      patch(`/posts/${random.pick(posts)}`, mergeType, { status: 'PUBLISHED', title: 'Out' }),
  },
  {
    route: 'GET /posts/{id}/comments',
    status: 200,
    make: ({ random, posts }) => get(`/posts/${random.pick(posts)}/comments`),
  },
  {
    route: 'POST /posts/{id}/comments',
    status: 201,
    make: ({ random, posts }) =>
      send('POST', `/posts/${random.pick(posts)}/comments`, { content: 'By REST' }),
  },
  {
    route: 'GET /comments/{id}',
    status: 200,
    make: ({ random, comments }) => get(`/comments/${random.pick(comments)}`),
  },
  {
    route: 'POST /auth/login',
    status: 200,
    make: () => send('POST', '/auth/login', { username: 'admin', password: 'password' }),
  },
  {
    route: 'GET /profile',
    status: 200,
    make: ({ token }) => get('/profile', [['Authorization', `Bearer ${token}`]]),
    weight: 2,
  },
  {
    route: 'POST /api/multiparts/simple',
    status: 200,
    make: () =>
      form('/api/multiparts/simple', [
        field('name', 'a name'),
        file('part', 'simple.txt', 'the content of a file'),
      ]),
    weight: 3,
  },
  {
    route: 'POST /api/multiparts/list',
    status: 200,
    make: () =>
      form('/api/multiparts/list', [
        file('a', 'list.txt', 'first'),
        file('b', 'list.svg', 'second'),
        field('c', 'third'),
      ]),
    weight: 3,
  },
  { route: 'GET /api/multiparts', status: 200, make: () => get('/api/multiparts') },
  {
    route: 'GET /api/multiparts/{name}',
    status: 206,
    make: () => get('/api/multiparts/simple.txt', [['Range', 'bytes=1-4']]),
    weight: 2,
  },
  {
    route: 'DELETE /api/multiparts/{name}',
    status: 204,
    make: () => ({ ...get('/api/multiparts/list.txt'), method: 'DELETE' }),
  },
  { route: 'GET /api/todos', status: 200, make: () => get('/api/todos') },
  {
    route: 'POST /api/todos',
    status: 201,
    make: () => send('POST', '/api/todos', { title: 'Do', completed: true }),
  },
  {
    route: 'GET /api/todos/{id}',
    status: 200,
    make: ({ random, todos }) => get(`/api/todos/${random.pick(todos)}`),
  },
  {
    route: 'PATCH /api/todos/{id}',
    status: 204,
    make: ({ random, todos }) =>
      patch(`/api/todos/${random.pick(todos)}`, mergeType, { completed: true }),
  },
  { route: 'GET /api/articles', status: 200, make: () => get('/api/articles') },
  { route: 'GET /api/articles/{id}', status: 200, make: () => get('/api/articles/1') },
  { route: 'POST /api/articles', status: 201, make: () => send('POST', '/api/articles', article) },
  {
    route: 'POST /api/articles',
    status: 201,
    make: ({ random }) => send('POST', '/api/articles', { ...article, id: 1 + random.below(3) }),
    weight: 2,
  },
  {
    route: 'PATCH /api/articles',
    status: 204,
    make: () => patch('/api/articles', jsonPatch, listPatch),
    weight: 3,
  },
  {
    route: 'PATCH /api/articles/{id}',
    status: 204,
    make: () => patch('/api/articles/1', jsonPatch, articlePatch),
    weight: 4,
  },
  {
    route: 'PATCH /api/articles/{id}',
    status: 204,
    make: () => patch('/api/articles/2', mergeType, merge),
    weight: 3,
  },
  { route: 'GET /articles/{id}', status: 308, make: () => get('/articles/1') },
  { route: 'GET /openapi.json', status: 200, make: () => get('/openapi.json') },
  { route: 'GET /docs', status: 308, make: () => get('/docs') },
  { route: 'GET /docs/*', status: 200, make: () => get('/docs/start.js') },
  { route: 'GET /', status: 200, make: () => get('/') },
  { route: 'GET /livez', status: 200, make: () => get('/livez') },
  { route: 'GET /readyz', status: 200, make: () => get('/readyz') },
  // Last: it takes away what others read.
  {
    route: 'DELETE /comments/{id}',
    status: 204,
    make: ({ comments }) => ({ ...get(`/comments/${comments.at(-1) ?? ''}`), method: 'DELETE' }),
  },
  {
    route: 'DELETE /api/todos/{id}',
    status: 204,
    make: ({ todos }) => ({ ...get(`/api/todos/${todos.at(-1) ?? ''}`), method: 'DELETE' }),
  },
  {
    route: 'DELETE /posts/{id}',
    status: 204,
    make: ({ posts }) => ({ ...get(`/posts/${posts.at(-1) ?? ''}`), method: 'DELETE' }),
    weight: 3,
  },
];
