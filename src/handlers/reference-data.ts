/**
 * What the API reference says of each route beside what its entry in the table of routes tells:
 * data, which `reference.ts` puts together.
 */

import type { ErrorCode } from '../errors.ts';
import { bytes, input, refer, type Schema, text } from './reference-schemas.ts';

export interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Answer extends Partial<Content> {
  readonly about: string;
  /** `application/json` where left out. */
  readonly type?: string;
  readonly headers?: readonly (keyof typeof headerMeanings)[];
}

export interface Operation {
  readonly summary: string;
  /** By media type. */
  readonly body?: Readonly<Record<string, Content>>;
  /** Headers of the request that make a difference, each with an example. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Beside those that follow from the route. */
  readonly errors?: readonly ErrorCode[];
  /** It has a tag, and answers or changes only where the tag is as the client asks. */
  readonly isTagged?: true;
  /** A list that is given by pages, too. */
  readonly isPaged?: true;
  /** A token is needed always or never, and not as REQUIRE_AUTH says. */
  readonly token?: 'always' | 'never';
}

export const headerMeanings = {
  Location: 'Where what was made is found.',
  ETag: 'The version of what was answered; a list that is streamed has none.',
  'Content-Disposition': 'The name to save the file under.',
  'Content-Range': 'Which bytes these are, or how many there are.',
  'Accept-Ranges': 'bytes',
  'Cache-Control': 'Whether the answer may be kept.',
  'WWW-Authenticate': 'Bearer, with the error of the token that was sent.',
  'Retry-After': 'Whole seconds to wait.',
  Allow: 'The methods of the path.',
  Accept: 'The media types that would do.',
  'Accept-Patch': 'The media types of patches that would do.',
  Link: 'The next page of a list, where there is one (RFC 8288).',
  'X-Request-Id': 'Names the request in the log.',
} as const;

const json = (name: string, example: unknown): NonNullable<Operation['body']> => ({
  'application/json': { schema: refer(name), example },
});
const listOf = (name: string): Schema => ({ type: 'array', items: refer(name) });
const answer = (about: string, schema: Schema): Answer => ({ about, schema });
const made = (about: string): Answer => ({ about, headers: ['Location'] });
const done: Answer = { about: 'It is done.' };

const post = { title: 'Hello, ink', content: 'The first post of many.' };
const todo = { title: 'Refill the inkwell', completed: false };
const article = {
  title: 'On ink',
  author: { givenName: 'Ada', familyName: 'Lovelace' },
  content: 'It dries.',
  tags: ['ink'],
  publishedAt: '2024-05-01T10:15:00',
};
const operations6902 = {
  schema: refer('JsonPatch'),
  example: [{ op: 'replace', path: '/title', value: 'On blue ink' }],
};
const fileHeaders = ['Cache-Control', 'Accept-Ranges'] as const;
const file = (about: string, ...headers: NonNullable<Answer['headers']>): Answer => ({
  about,
  type: 'application/octet-stream',
  schema: bytes,
  headers: [...fileHeaders, 'Content-Disposition', ...headers],
});
const noStore: Answer['headers'] = ['Cache-Control'];

/** By method and path, as in the table of routes. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /hello': {
    summary: 'A greeting',
    answers: { 200: { ...answer('The greeting.', text), type: 'text/plain' } },
  },
  'GET /posts': {
    summary: 'All posts, newest first',
    answers: { 200: answer('The posts.', listOf('Post')) },
    isTagged: true,
    isPaged: true,
  },
  'POST /posts': {
    summary: 'Create a post',
    body: json('PostInput', post),
    answers: { 201: made('It is a draft, by the account of the token that was sent.') },
  },
  'GET /posts/{id}': {
    summary: 'One post',
    answers: { 200: answer('The post.', refer('Post')) },
    isTagged: true,
  },
  'PUT /posts/{id}': {
    summary: 'Replace title and content',
    body: json('PostInput', { ...post, title: 'Hello again' }),
    answers: { 204: done },
    isTagged: true,
  },
  'DELETE /posts/{id}': {
    summary: 'Remove a post and its comments',
    answers: { 204: done },
    isTagged: true,
  },
  'GET /posts/{id}/comments': {
    summary: 'The comments of a post, oldest first',
    answers: { 200: answer('The comments.', listOf('CommentItem')) },
    isTagged: true,
    isPaged: true,
  },
  'POST /posts/{id}/comments': {
    summary: 'Add a comment',
    body: json('CommentInput', { content: 'Well said.' }),
    answers: {
      201: { ...made('It is announced to subscribers.'), schema: { type: 'array', maxItems: 0 } },
    },
  },
  'GET /comments/{id}': {
    summary: 'One comment, with the id and title of its post',
    answers: { 200: answer('The comment.', refer('Comment')) },
    isTagged: true,
  },
  'POST /auth/login': {
    summary: 'Get a token for a user name and password',
    body: json('Credentials', { username: 'user', password: 'password' }),
    answers: {
      200: { ...answer('The token, good for a minute.', refer('Token')), headers: noStore },
    },
    errors: ['invalid_credentials', 'too_many_requests'],
    token: 'never',
  },
  'GET /profile': {
    summary: 'The account that the token belongs to',
    answers: { 200: { ...answer('The account.', refer('Profile')), headers: noStore } },
    token: 'always',
  },
  'POST /api/multiparts/simple': {
    summary: 'Store one file',
    body: {
      'multipart/form-data': {
        schema: input({ name: text, part: bytes }, 'part'),
        example: { name: 'a note', part: 'The quick brown fox' },
      },
    },
    answers: { 200: done },
    errors: ['invalid_body', 'storage_full'],
  },
  'POST /api/multiparts/list': {
    summary: 'Store every part, all or none',
    body: {
      'multipart/form-data': {
        schema: { type: 'object', additionalProperties: bytes },
        example: { first: 'One', second: 'Two' },
      },
    },
    answers: { 200: done },
    errors: ['storage_full'],
  },
  'GET /api/multiparts': {
    summary: 'All stored files',
    answers: {
      200: { about: 'A fixed text, then the files.', type: 'multipart/form-data', schema: bytes },
    },
  },
  'GET /api/multiparts/{name}': {
    summary: 'One stored file, or a range of it',
    headers: { Range: 'bytes=0-3', 'If-Range': '"…"' },
    answers: {
      200: file('The file; its type follows from the extension of its name.'),
      206: file('The bytes of the range.', 'Content-Range'),
      304: { about: 'The client has it.', headers: fileHeaders },
    },
    errors: ['range_not_satisfiable'],
    isTagged: true,
  },
  'DELETE /api/multiparts/{name}': {
    summary: 'Remove a stored file',
    answers: { 204: done },
    isTagged: true,
  },
  'GET /api/todos': {
    summary: 'All todos',
    answers: { 200: answer('The todos.', listOf('Todo')) },
    isTagged: true,
    isPaged: true,
  },
  'POST /api/todos': {
    summary: 'Create a todo',
    body: json('TodoInput', todo),
    answers: { 201: made('It is stored.') },
  },
  'GET /api/todos/{id}': {
    summary: 'One todo',
    answers: { 200: answer('The todo.', refer('Todo')) },
    isTagged: true,
  },
  'GET /api/articles': {
    summary: 'All articles, by id',
    answers: { 200: answer('The articles.', listOf('Article')) },
    isTagged: true,
    isPaged: true,
  },
  'GET /api/articles/{id}': {
    summary: 'One article',
    answers: { 200: answer('The article.', refer('Article')) },
    isTagged: true,
  },
  'POST /api/articles': {
    summary: 'Store an article under its id, or under the next one',
    body: json('ArticleInput', article),
    answers: { 201: made('It is stored.') },
  },
  'PATCH /api/articles': {
    summary: 'Patch the array of all articles',
    body: {
      'application/json-patch+json': {
        ...operations6902,
        example: [{ op: 'replace', path: '/0/title', value: 'On black ink' }],
      },
    },
    answers: { 204: done },
    errors: ['invalid_patch', 'patch_not_applicable'],
    isTagged: true,
  },
  'PATCH /api/articles/{id}': {
    summary: 'Patch one article',
    body: {
      'application/json-patch+json': operations6902,
      'application/merge-patch+json': {
        schema: refer('MergePatch'),
        example: { tags: ['ink', 'blue'] },
      },
    },
    answers: { 204: done },
    errors: ['invalid_patch', 'patch_not_applicable'],
    isTagged: true,
  },
  'GET /articles/{id}': {
    summary: 'Where the Location of an article points',
    answers: { 308: made('It is under /api.') },
  },
  'GET /livez': {
    summary: 'Is the process alive?',
    answers: { 200: { ...answer('It is.', refer('Live')), headers: noStore } },
  },
  'GET /readyz': {
    summary: 'Should it be sent requests?',
    answers: {
      200: { ...answer('Yes.', refer('Ready')), headers: noStore },
      503: { ...answer('No: it stops, or the store is away.', refer('Ready')), headers: noStore },
    },
  },
};
