/**
 * Requests and responses of the API as JSON Schema. The compiler checks that each record has
 * exactly the members of the store's type.
 */

import type { Account, Comment, Post, Todo } from '../../store/model.ts';

/** JSON Schema, draft 2020-12. */
export interface Schema {
  readonly $ref?: string;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly [keyword: string]: unknown;
}

/** Examples of bodies and responses are composed of those of their parts. */
const like = (example: unknown, schema: Schema): Schema => ({ ...schema, examples: [example] });

export const text: Schema = { type: 'string' };
export const uuid = like('019b8d5e-9c00-7000-8000-000000000101', {
  type: 'string',
  format: 'uuid',
});
export const bytes: Schema = { type: 'string', format: 'binary' };
const filled: Schema = { type: 'string', pattern: '\\S' };
const [title, content] = ['Hello, ink', 'The first post of many.'];
const commentText = 'Well said.';
const username = like('user', text);
const localDateTime = like('2026-01-05T09:00:00', {
  type: 'string',
  description: 'UTC, without a zone.',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?$',
});

const postStatuses: readonly Post['status'][] = ['DRAFT', 'PENDING_MODERATION', 'PUBLISHED'];

const oneOf = (...words: readonly string[]): Schema => ({ type: 'string', enum: words });

/** A schema for each member of the type. */
type Members<T> = { readonly [K in keyof T]-?: Schema };

/** A response has exactly these members. */
function record(properties: Readonly<Record<string, Schema>>): Schema {
  const required = Object.keys(properties);
  return { type: 'object', properties, required, additionalProperties: false };
}

/** A request body may have further members. */
export function input(properties: Readonly<Record<string, Schema>>, ...required: string[]): Schema {
  return { type: 'object', properties, required };
}

/** Members that are not named are kept. */
const open: Schema = { type: 'object', additionalProperties: true };

export const refer = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

/** Composes an example value of the schema. */
export function exampleOf({ $ref, examples, items, properties, ...rest }: Schema): unknown {
  if ($ref !== undefined) return exampleOf(schemas[$ref.split('/').at(-1) ?? ''] ?? {});
  if (examples !== undefined) return examples[0];
  if (items !== undefined) return [exampleOf(items)];
  if (properties === undefined) return rest.enum?.[0];
  const members = Object.entries(properties);
  return Object.fromEntries(members.map(([name, member]) => [name, exampleOf(member)]));
}

const articleMembers = {
  title: like('On ink', filled),
  author: {
    type: 'object',
    properties: { givenName: like('Ada', text), familyName: like('Lovelace', text) },
  },
  content: like('It dries.', text),
  tags: { type: 'array', items: like('ink', text) },
  publishedAt: like('2024-05-01T10:15:00', {
    type: 'string',
    description: 'A local date-time, kept as it was sent.',
  }),
} satisfies Record<string, Schema>;
const articleId = like(1, { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const todoMembers = {
  title: like('Refill the inkwell', filled),
  completed: like(false, { type: 'boolean', default: false }),
};
const roles: Schema = { type: 'array', items: like('USER', text) };

export const schemas: Readonly<Record<string, Schema>> = {
  Post: record({
    id: uuid,
    title: like(title, text),
    content: like(content, text),
    status: oneOf(...postStatuses),
    createdAt: localDateTime,
  } satisfies Members<Omit<Post, 'authorId'>>),
  PostInput: input(
    { title: like(title, filled), content: like(content, filled) },
    'title',
    'content',
  ),
  CommentItem: record({
    id: uuid,
    content: like(commentText, text),
    createdAt: localDateTime,
  } satisfies Members<Omit<Comment, 'postId'>>),
  Comment: record({
    id: uuid,
    content: like(commentText, text),
    post: record({ id: uuid, title: like(title, text) } satisfies Members<
      Pick<Post, 'id' | 'title'>
    >),
  } satisfies Members<Pick<Comment, 'id' | 'content'> & { post: unknown }>),
  CommentInput: input({ content: like(commentText, filled) }, 'content'),
  Credentials: input({ username, password: like('password', text) }, 'username', 'password'),
  Token: record({ access_token: like('eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ….…', text) }),
  Profile: record({
    username,
    email: like('user@example.com', text),
    id: uuid,
    roles,
  } satisfies Members<Omit<Account, 'passwordHash'>>),
  Todo: record({ id: uuid, ...todoMembers } satisfies Members<Todo>),
  TodoInput: input(todoMembers, 'title'),
  Article: {
    ...input({ id: articleId, ...articleMembers }, 'id', 'title'),
    ...open,
    description: 'Open: members beside these are kept as they were sent.',
  },
  ArticleInput: like(exampleOf(input(articleMembers)), {
    ...input({ id: articleId, ...articleMembers }, 'title'),
    ...open,
  }),
  JsonPatch: like([{ op: 'replace', path: '/title', value: 'On blue ink' }], {
    type: 'array',
    items: input({ op: text, path: text, from: text, value: {} }, 'op', 'path'),
    description: 'RFC 6902',
  }),
  MergePatch: like({ tags: ['ink', 'blue'] }, { ...open, description: 'RFC 7386' }),
  Live: record({ status: oneOf('live') }),
  Ready: record({
    status: oneOf('ready', 'not ready'),
    checks: record({ server: like('ok', text), store: like('ok', text) }),
  }),
};
