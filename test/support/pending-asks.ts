/** Requests that name a comment, or could tell of it: over REST, and of GraphQL (R48, R52). */

import { type Ask, conditions, json, merge, overHttp, toAsk } from './draft-asks.ts';

export interface Blogged {
  /** The post that the comment is on. */
  readonly post: string;
  /** A comment on it that all read. */
  readonly visible: string;
}

/** Reads of the comment. */
export const readsOf = (comment: string): readonly Ask[] =>
  [comment, comment.toUpperCase()].flatMap((id) =>
    ['GET', 'HEAD'].map((method) => ({ method, path: `/comments/${id}` })),
  );

const writesOf = (comment: string, { visible }: Blogged): readonly Ask[] => [
  { method: 'DELETE', path: `/comments/${comment}` },
  ...[{ status: 'PUBLISHED' }, {}, { status: 'PENDING' }].map((body) =>
    toAsk(`PATCH /comments/${comment}`, body, merge),
  ),
  toAsk(`PATCH /comments/${comment}`, { status: 'PUBLISHED' }, json),
  ...[[comment], [visible, comment], [comment, 'x']].map((ids) =>
    toAsk('POST /comments/removals', { ids }, json),
  ),
  toAsk(`POST /posts/${comment}/comments`, { content: 'c' }, json),
];

/** Lists, which name the comment at most as a place. */
export function listsOf({ post }: Blogged, from = ''): readonly Ask[] {
  const lists = [`/posts/${post}/comments?`, '/comments?'];
  lists.push('/comments?status=PUBLISHED', '/comments?status=PENDING');
  const limits = ['', '&limit=1', '&limit=2', '&limit=900'];
  const after = from && `&after=${from}`;
  const paths = limits.flatMap((limit) => lists.map((list) => `${list}${limit}${after}`));
  return paths.map((path) => ({ method: 'GET', path: path.replace('?&', '?') }));
}

export function listQueriesOf({ post }: Blogged, from = ''): readonly string[] {
  const after = from && `, after: "${from}"`;
  const fields =
    'id content name status author { name } post { id title comments(first: 9) { id } }';
  const ofAuthor = 'author { posts { comments { id } } }';
  return [
    `{ postById(postId: "${post}") { comments(first: 2${after}) { ${fields} } } }`,
    `{ allPosts(first: 9) { comments(first: 1${after}) { id status } ${ofAuthor} } }`,
    ...[1, 900].map((first) => `{ comments(first: ${first}${after}) { ${fields} } }`),
    ...['PENDING', 'PUBLISHED'].map(
      (status) => `{ comments(first: 9, status: ${status}${after}) { id } }`,
    ),
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
  const queries = [...listQueriesOf(blog, comment), ...mutationsOf(comment)];
  const others = [...listsOf(blog, comment), ...queries.flatMap(overHttp)];
  return [...plain, ...plain.flatMap((ask) => conditions(ask, tag)), ...others];
}
