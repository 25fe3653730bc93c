/** Requests that name a post, or could tell of it: over REST, and of GraphQL (R44). */

import type { Headers } from './drafts.ts';

/** A post and its comment. */
export interface Named {
  readonly post: string;
  readonly comment: string;
}
export interface Ids {
  /** They exist for the author and for administrators. */
  readonly hidden: readonly Named[];
  readonly removed: Named;
  readonly visible: Named;
  readonly author: string;
}

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Headers;
}

/** `target`: method and path. */
export const toAsk = (target: string, body?: object, headers: Headers = {}): Ask => {
  const [method = '', path = ''] = target.split(' ');
  return { method, path, headers, ...(body && { body }) };
};
export const merge = { 'Content-Type': 'application/merge-patch+json' };
export const json = { 'Content-Type': 'application/json' };
const texts = { title: 'x', content: 'y' };

/** Reads that name the post or its comment, and have to find them. */
export const pathsOf = ({ post, comment }: Named): readonly string[] => [
  `/posts/${post}`,
  `/posts/${post.toUpperCase()}`,
  `/posts/${post}/comments`,
  `/posts/${post}/comments?limit=1`,
  `/posts/${post}/comments?limit=1&after=${comment}`,
  `/comments/${comment}`,
];
export const queriesOf = ({ post, comment }: Named): readonly string[] => [
  `{ postById(postId: "${post}") { id title comments { id } author { posts { id } } } }`,
  `{ postById(postId: "${post}") { comments(first: 1, after: "${comment}") { id } } }`,
  `query Two { a: postById(postId: "${post}") { id } b: postById(postId: "${post}") { title } }`,
];

/** Lists, which name the post at most as a place. */
export const listsOf = ({ visible, author }: Ids, from = ''): readonly string[] => {
  const at = from && `&after=${from}`;
  const filters = ['', '&status=DRAFT', '&status=PENDING_MODERATION', '&status=PUBLISHED'];
  return [
    ...filters.flatMap((filter) => [
      `/posts?limit=2${filter}${at}`,
      `/posts?limit=900${filter}${at}`,
    ]),
    ...filters.map((filter) => `/posts?author=${author}${filter}${at}`),
    ...(from === '' ? ['/posts'] : [`/posts?after=${from}`]),
    `/posts/${visible.post}/comments?limit=1${at}`,
  ];
};
export const listQueriesOf = ({ visible, author }: Ids, from = ''): readonly string[] => {
  const at = from && `, after: "${from}"`;
  const own = `author: "${author}"`;
  const args = ['first: 2', 'first: 900', 'first: 1, status: DRAFT', `first: 9, ${own}`].concat(
    `first: 9, ${own}, status: DRAFT`,
  );
  return [
    ...args.map((each) => `{ allPosts(${each}${at}) { id status comments { id } } }`),
    `{ postById(postId: "${visible.post}") { author { posts(first: 2${at}) { id } } } }`,
    `{ postById(postId: "${visible.post}") { comments(first: 1${at}) { id } } }`,
  ];
};

/** Writes of a stranger. */
export const mutationsOf = ({ post, comment }: Named): readonly string[] => [
  `mutation { updatePost(id: "${post}", changes: { status: PUBLISHED }) { id title } }`,
  `mutation { updatePost(id: "${post}", changes: { title: " " }) { id } }`,
  `mutation { deletePost(id: "${post}") }`,
  `mutation { deleteComment(id: "${comment}") }`,
  `mutation { addComment(commentInput: { postId: "${post}", content: "c" }) }`,
  `mutation { addComment(commentInput: { postId: "${post}", content: " " }) }`,
];
const writesOf = ({ post, comment }: Named): readonly Ask[] => [
  toAsk(`PUT /posts/${post}`, texts, json),
  toAsk(`PUT /posts/${post}`, { title: 1 }, json),
  toAsk(`PUT /posts/${post}`, texts),
  toAsk(`PATCH /posts/${post}`, { status: 'PUBLISHED' }, merge),
  toAsk(`PATCH /posts/${post}`, { status: 'no' }, merge),
  toAsk(`PATCH /posts/${post}`, {}, json),
  toAsk(`DELETE /posts/${post}`),
  toAsk(`DELETE /comments/${comment}`),
  toAsk(`POST /posts/${post}/comments`, { content: 'c' }, json),
  toAsk(`POST /posts/${post}/comments`, { content: ' ' }, json),
  toAsk(`POST /posts/${post}/comments`, {}),
];

/** A request of GraphQL, in each form over HTTP. */
export const overHttp = (query: string): readonly Ask[] => {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query }));
  form.append('map', '{}');
  const one = { method: 'POST', path: '/graphql', headers: json };
  const isRead = !query.startsWith('mutation');
  return [
    { ...one, body: { query } },
    { ...one, body: { query }, headers: { ...json, Accept: 'application/graphql-response+json' } },
    { ...one, body: { query }, headers: { ...json, Accept: 'text/event-stream' } },
    { ...one, body: [{ query: '{ __typename }' }, { query }, { query }] },
    { method: 'POST', path: '/graphql', body: form },
    ...(isRead ? [{ method: 'GET', path: `/graphql?query=${encodeURIComponent(query)}` }] : []),
  ];
};

/** A request with each of the headers that change what it means. */
export const conditions = ({ headers, ...ask }: Ask, tag: string): readonly Ask[] =>
  [
    { 'If-None-Match': tag },
    { 'If-Match': tag },
    { 'If-None-Match': '*' },
    { 'If-Match': '*' },
    { 'Idempotency-Key': 'one' },
    { Prefer: 'return=representation' },
  ].map((condition) => ({ ...ask, headers: { ...headers, ...condition } }));

export const readsOf = (named: Named): readonly Ask[] => [
  ...pathsOf(named).flatMap((path) => ['GET', 'HEAD'].map((method) => ({ method, path }))),
  ...queriesOf(named).flatMap(overHttp),
];

/** Everything that names the post. */
export function asksOf(ids: Ids, named: Named): readonly Ask[] {
  const lists = [...listsOf(ids, named.post), ...listsOf(ids, named.comment)];
  const queries = [...listQueriesOf(ids, named.post), ...mutationsOf(named)];
  return [
    ...readsOf(named),
    ...writesOf(named),
    ...lists.map((path) => ({ method: 'GET', path })),
    ...queries.flatMap(overHttp),
  ];
}

/** The same with conditions. `tag`: that of the hidden post, as its author has it. */
export function conditionalOf(named: Named, tag: string): readonly Ask[] {
  const asks = [...writesOf(named), ...readsOf(named).filter(({ body }) => !body)];
  return asks.flatMap((ask) => conditions(ask, tag));
}
