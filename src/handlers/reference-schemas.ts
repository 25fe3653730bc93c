/**
 * What the API takes and gives, as JSON Schema. A record has the members of the store's type: one
 * more or less does not compile.
 */

import type { Account, Comment, Post, Todo } from '../store/model.ts';

/** JSON Schema, draft 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

export const text: Schema = { type: 'string' };
const uuid: Schema = { type: 'string', format: 'uuid' };
export const bytes: Schema = { type: 'string', format: 'binary' };
const filled: Schema = { type: 'string', pattern: '\\S' };
const localDateTime: Schema = {
  type: 'string',
  description: 'UTC, without a zone.',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?$',
};

const postStatuses: readonly Post['status'][] = ['DRAFT', 'PENDING_MODERATION', 'PUBLISHED'];

const oneOf = (...words: readonly string[]): Schema => ({ type: 'string', enum: words });

/** A schema for each member of a type. */
type Members<T> = { readonly [K in keyof T]-?: Schema };

/** An answer has these members and no others. */
function record(properties: Readonly<Record<string, Schema>>): Schema {
  const required = Object.keys(properties);
  return { type: 'object', properties, required, additionalProperties: false };
}

/** In a body, members beside these are allowed. */
export function input(properties: Readonly<Record<string, Schema>>, ...required: string[]): Schema {
  return { type: 'object', properties, required };
}

/** Members beside those that are named are kept. */
const open: Schema = { type: 'object', additionalProperties: true };

export const refer = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const articleMembers = {
  title: filled,
  author: { type: 'object', properties: { givenName: text, familyName: text } },
  content: text,
  tags: { type: 'array', items: text },
  publishedAt: { type: 'string', description: 'A local date-time, kept as it was sent.' },
} satisfies Record<string, Schema>;
const articleId: Schema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };

export const schemas: Readonly<Record<string, Schema>> = {
  Post: record({
    id: uuid,
    title: text,
    content: text,
    status: oneOf(...postStatuses),
    createdAt: localDateTime,
  } satisfies Members<Omit<Post, 'authorId'>>),
  PostInput: input({ title: filled, content: filled }, 'title', 'content'),
  CommentItem: record({
    id: uuid,
    content: text,
    createdAt: localDateTime,
  } satisfies Members<Omit<Comment, 'postId'>>),
  Comment: record({
    id: uuid,
    content: text,
    post: record({ id: uuid, title: text } satisfies Members<Pick<Post, 'id' | 'title'>>),
  } satisfies Members<Pick<Comment, 'id' | 'content'> & { post: unknown }>),
  CommentInput: input({ content: filled }, 'content'),
  Credentials: input({ username: text, password: text }, 'username', 'password'),
  Token: record({ access_token: text }),
  Profile: record({
    username: text,
    email: text,
    id: uuid,
    roles: { type: 'array', items: text },
  } satisfies Members<Omit<Account, 'passwordHash'>>),
  Todo: record({ id: uuid, title: text, completed: { type: 'boolean' } } satisfies Members<Todo>),
  TodoInput: input({ title: filled, completed: { type: 'boolean', default: false } }, 'title'),
  Article: {
    ...input({ id: articleId, ...articleMembers }, 'id', 'title'),
    ...open,
    description: 'Open: members beside these are kept as they were sent.',
  },
  ArticleInput: { ...input({ id: articleId, ...articleMembers }, 'title'), ...open },
  JsonPatch: {
    type: 'array',
    items: input({ op: text, path: text, from: text, value: {} }, 'op', 'path'),
    description: 'RFC 6902',
  },
  MergePatch: { ...open, description: 'RFC 7386' },
  Live: record({ status: oneOf('live') }),
  Ready: record({
    status: oneOf('ready', 'not ready'),
    checks: record({ server: text, store: text }),
  }),
};
