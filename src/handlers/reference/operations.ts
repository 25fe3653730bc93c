/**
 * What the API reference says of each route beside what its entry in the table of routes tells:
 * data, which `reference.ts` puts together.
 */

import type { ErrorCode } from '../../errors.ts';
import { bytes, exampleOf, input, refer, type Schema, text, uuid } from './schemas.ts';

export interface Content {
  readonly schema: Schema;
  /** Where it is not that of the schema. */
  readonly example?: unknown;
}

export interface Answer extends Partial<Content> {
  readonly about: string;
  /** `application/json` where left out. */
  readonly type?: string;
  readonly headers?: readonly (keyof typeof headerMeanings)[];
  /** An example of the header `Location`, where there is one. */
  readonly location?: string;
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

const json = (name: string): NonNullable<Operation['body']> => ({
  'application/json': { schema: refer(name) },
});
const listOf = (name: string): Schema => ({ type: 'array', items: refer(name) });
const answer = (about: string, schema: Schema): Answer => ({ about, schema });
const made = (about: string, location: string): Answer => ({ about, location });
const id = String(exampleOf(uuid));
const patch6902: Content = { schema: refer('JsonPatch') };
const files = [
  '--b',
  'Content-Disposition: form-data; name="abd"; filename="abc.text"',
  'Content-Type: text/plain',
  '',
  'this is a text content',
  '--b--',
  '',
].join('\r\n');
const done: Answer = { about: 'It is done.' };
const fileHeaders = ['Cache-Control', 'Accept-Ranges'] as const;
const file = (
  about: string,
  example: string,
  ...headers: NonNullable<Answer['headers']>
): Answer => ({
  about,
  type: 'application/octet-stream',
  schema: bytes,
  example,
  headers: [...fileHeaders, 'Content-Disposition', ...headers],
});
const noStore: Answer['headers'] = ['Cache-Control'];

/** By method and path, as in the table of routes. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /hello': {
    summary: 'A greeting',
    answers: {
      200: {
        ...answer('The greeting.', text),
        type: 'text/plain',
        example: 'Hello from Inkwell.',
      },
    },
  },
  'GET /posts': {
    summary: 'All posts, newest first',
    answers: { 200: answer('The posts.', listOf('Post')) },
    isTagged: true,
    isPaged: true,
  },
  'POST /posts': {
    summary: 'Create a post',
    body: json('PostInput'),
    answers: {
      201: made('It is a draft, by the account of the token that was sent.', `/posts/${id}`),
    },
  },
  'GET /posts/{id}': {
    summary: 'One post',
    answers: { 200: answer('The post.', refer('Post')) },
    isTagged: true,
  },
  'PUT /posts/{id}': {
    summary: 'Replace title and content',
    body: json('PostInput'),
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
    body: json('CommentInput'),
    answers: {
      201: {
        ...made('It is announced to subscribers.', `/comments/${id}`),
        schema: { type: 'array', maxItems: 0 },
        example: [],
      },
    },
  },
  'GET /comments/{id}': {
    summary: 'One comment, with the id and title of its post',
    answers: { 200: answer('The comment.', refer('Comment')) },
    isTagged: true,
  },
  'POST /auth/login': {
    summary: 'Get a token for a user name and password',
    body: json('Credentials'),
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
      200: {
        about: 'A fixed text, then the files.',
        type: 'multipart/form-data',
        schema: bytes,
        example: files,
      },
    },
  },
  'GET /api/multiparts/{name}': {
    summary: 'One stored file, or a range of it',
    headers: { Range: 'bytes=0-3', 'If-Range': '"…"' },
    answers: {
      200: file('The file; its type follows from the extension of its name.', 'a stored file'),
      206: file('The bytes of the range.', 'a st', 'Content-Range'),
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
    body: json('TodoInput'),
    answers: { 201: made('It is stored.', `http://localhost:8080/api/todos/${id}`) },
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
    body: json('ArticleInput'),
    answers: { 201: made('It is stored.', '/articles/3') },
  },
  'PATCH /api/articles': {
    summary: 'Patch the array of all articles',
    body: {
      'application/json-patch+json': {
        ...patch6902,
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
      'application/json-patch+json': patch6902,
      'application/merge-patch+json': {
        schema: refer('MergePatch'),
      },
    },
    answers: { 204: done },
    errors: ['invalid_patch', 'patch_not_applicable'],
    isTagged: true,
  },
  'GET /articles/{id}': {
    summary: 'Where the Location of an article points',
    answers: { 308: made('It is under /api.', '/api/articles/3') },
  },
  'GET /livez': {
    summary: 'Is the process alive?',
    answers: { 200: { ...answer('It is.', refer('Live')), headers: noStore } },
  },
  'GET /readyz': {
    summary: 'Should it be sent requests?',
    answers: {
      200: { ...answer('Yes.', refer('Ready')), headers: noStore },
      503: {
        ...answer('No: it stops, or the store is away.', refer('Ready')),
        headers: noStore,
        example: { status: 'not ready', checks: { server: 'ok', store: 'does not answer' } },
      },
    },
  },
};
