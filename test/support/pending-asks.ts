/** Requests that name a comment, or could tell of it: over REST, and of GraphQL (R48, R52). */

import { type Ask, conditions, overHttp } from './draft-asks.ts';

export interface Blogged {
  /** The post that the comment is on. */
  readonly post: string;
  /** A comment on it that all read. */
  readonly visible: string;
}

const merge = { 'Content-Type': 'application/merge-patch+json' };
const json = { 'Content-Type': 'application/json' };

const isWrite = ({ method }: Ask): boolean => !/GET|HEAD/.test(method);

/** Reads of the comment. */
export const readsOf = (comment: string): readonly Ask[] =>
  [`/comments/${comment}`, `/comments/${comment.toUpperCase()}`].flatMap((path) =>
    ['GET', 'HEAD'].map((method) => ({ method, path })),
  );

export const writesOf = (comment: string, { visible }: Blogged): readonly Ask[] => [
  { method: 'DELETE', path: `/comments/${comment}` },
  {
    method: 'PATCH',
    path: `/comments/${comment}`,
    body: { status: 'PUBLISHED' },
    headers: merge,
  },
  { method: 'PATCH', path: `/comments/${comment}`, body: {}, headers: merge },
  { method: 'PATCH', path: `/comments/${comment}`, body: { status: 'PENDING' }, headers: merge },
  { method: 'PATCH', path: `/comments/${comment}`, body: { status: 'PUBLISHED' }, headers: json },
  { method: 'POST', path: '/comments/removals', body: { ids: [comment] }, headers: json },
  { method: 'POST', path: '/comments/removals', body: { ids: [visible, comment] }, headers: json },
  { method: 'POST', path: '/comments/removals', body: { ids: [comment, 'x'] }, headers: json },
  { method: 'POST', path: `/posts/${comment}/comments`, body: { content: 'c' }, headers: json },
];

/** Lists, which name the comment at most as a place. */
export function listsOf({ post }: Blogged, from = ''): readonly Ask[] {
  const after = from && `&after=${from}`;
  const paths = ['', '?limit=1', '?limit=2', '?limit=900'].flatMap((query) => [
    `/posts/${post}/comments${query}`,
    `/comments${query}`,
    `/comments${query === '' ? '?' : `${query}&`}status=PUBLISHED`,
    `/comments${query === '' ? '?' : `${query}&`}status=PENDING`,
  ]);
  return paths.map((path) => ({
    method: 'GET',
    path: (after && (path.includes('?') ? `${path}${after}` : `${path}?${after.slice(1)}`)) || path,
  }));
}

export function listQueriesOf({ post }: Blogged, from = ''): readonly string[] {
  const after = from && `, after: "${from}"`;
  const fields =
    'id content name status author { name } post { id title comments(first: 9) { id } }';
  return [
    `{ postById(postId: "${post}") { comments(first: 2${after}) { ${fields} } } }`,
    `{ allPosts(first: 9) { comments(first: 1${after}) { id status } author { posts { comments { id } } } } }`,
    `{ comments(first: 1${after}) { ${fields} } }`,
    `{ comments(first: 900${after}) { ${fields} } }`,
    `{ comments(first: 9, status: PENDING${after}) { id } }`,
    `{ comments(first: 9, status: PUBLISHED${after}) { id } }`,
  ];
}

export const mutationsOf = (comment: string): readonly string[] => [
  `mutation { deleteComment(id: "${comment}") }`,
  `mutation { approveComment(id: "${comment}") { id content status } }`,
  `mutation { approveComment(id: "${comment.toUpperCase()}") { post { comments { id } } } }`,
];

/** Everything that names the comment. `tag`: its own, as those have it who moderate it. */
export function asksOf(comment: string, blog: Blogged, tag: string): readonly Ask[] {
  const plain = [...readsOf(comment), ...writesOf(comment, blog)];
  const conditional = plain.flatMap(({ headers, ...ask }) =>
    conditions(tag).map((condition) => ({ ...ask, headers: { ...headers, ...condition } })),
  );
  const queries = [...listQueriesOf(blog, comment), ...mutationsOf(comment)];
  return [...plain, ...conditional, ...listsOf(blog, comment), ...queries.flatMap(overHttp)];
}

export { isWrite };
