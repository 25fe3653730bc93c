/**
 * The part of the API reference that does not follow from the table of routes. It is data, which
 * `reference.ts` combines with that table.
 */

import type { ErrorCode } from '../../errors.ts';
import { bytes, exampleOf, input, refer, type Schema, text, uuid } from './schemas.ts';

export interface Content {
  readonly schema: Schema;
  /** Replaces the example of the schema. */
  readonly example?: unknown;
}

export interface OperationResponse extends Partial<Content> {
  readonly about: string;
  /** `application/json` if absent. */
  readonly type?: string;
  readonly headers?: readonly (keyof typeof headerMeanings)[];
  /** An example of the header `Location`, if the response has one. */
  readonly location?: string;
}

export interface Operation {
  readonly summary: string;
  /** The body for each media type. */
  readonly body?: Readonly<Record<string, Content>>;
  /** Request headers that affect the response, each with an example. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly responses: Readonly<Record<number, OperationResponse>>;
  /** Errors in addition to those that follow from the route. */
  readonly errors?: readonly ErrorCode[];
  /** The resource has an entity tag, and its methods are conditional. */
  readonly isTagged?: true;
  /** The list can be requested in pages. */
  readonly isPaged?: true;
  /** Whether a token is needed, where REQUIRE_AUTH does not decide that. */
  readonly token?: 'always' | 'never';
}

export const headerMeanings = {
  Location: 'Where what was made is found.',
  ETag: 'The version of the response; a list that is streamed has none.',
  'Content-Disposition': 'The name to save the file under.',
  'Content-Range': 'Which bytes these are, or how many there are.',
  'Accept-Ranges': 'bytes',
  'Cache-Control': 'Whether the response may be cached.',
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
const response = (about: string, schema: Schema): OperationResponse => ({ about, schema });
const made = (about: string, location: string): OperationResponse => ({ about, location });
const id = String(exampleOf(uuid));
const files = [
  '--b',
  'Content-Disposition: form-data; name="abd"; filename="abc.text"',
  'Content-Type: text/plain',
  '',
  'this is a text content',
  '--b--',
  '',
].join('\r\n');
const done: OperationResponse = { about: 'It is done.' };
const fileHeaders = ['Cache-Control', 'Accept-Ranges'] as const;
const file = (
  about: string,
  example: string,
  ...headers: NonNullable<OperationResponse['headers']>
): OperationResponse => ({
  about,
  type: 'application/octet-stream',
  schema: bytes,
  example,
  headers: [...fileHeaders, 'Content-Disposition', ...headers],
});
const uncached = (about: string, name: string): OperationResponse => {
  return { ...response(about, refer(name)), headers: ['Cache-Control'] };
};
const read = (summary: string, schema: Schema): Operation => {
  return { summary, responses: { 200: response(summary, schema) }, isTagged: true };
};
const record = (summary: string, name: string): Operation => read(summary, refer(name));
const list = (summary: string, name: string): Operation => {
  return { ...read(summary, { type: 'array', items: refer(name) }), isPaged: true };
};
const create = (summary: string, name: string, created: OperationResponse): Operation => {
  return { summary, body: json(name), responses: { 201: created } };
};
const change = (summary: string, body?: Operation['body']): Operation => {
  return { summary, ...(body && { body }), responses: { 204: done }, isTagged: true };
};

/** Keyed by method and path, as in the table of routes. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /hello': {
    summary: 'A greeting',
    responses: {
      200: {
        ...response('The greeting.', text),
        type: 'text/plain',
        example: 'Hello from Inkwell.',
      },
    },
  },
  'GET /posts': list('All posts, newest first', 'Post'),
  'POST /posts': create(
    'Create a post',
    'PostInput',
    made('It is a draft, by the account of the token that was sent.', `/posts/${id}`),
  ),
  'GET /posts/{id}': record('One post', 'Post'),
  'PUT /posts/{id}': change('Replace title and content', json('PostInput')),
  'DELETE /posts/{id}': change('Remove a post and its comments'),
  'GET /posts/{id}/comments': list('The comments of a post, oldest first', 'CommentItem'),
  'POST /posts/{id}/comments': {
    summary: 'Add a comment',
    body: json('CommentInput'),
    responses: {
      201: {
        ...made('It is announced to subscribers.', `/comments/${id}`),
        schema: { type: 'array', maxItems: 0 },
        example: [],
      },
    },
  },
  'GET /comments/{id}': record('One comment, with the id and title of its post', 'Comment'),
  'POST /auth/login': {
    summary: 'Get a token for a user name and password',
    body: json('Credentials'),
    responses: { 200: uncached('The token, good for a minute.', 'Token') },
    errors: ['invalid_credentials', 'too_many_requests'],
    token: 'never',
  },
  'GET /profile': {
    summary: 'The account that the token belongs to',
    responses: { 200: uncached('The account.', 'Profile') },
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
    responses: { 200: done },
    errors: ['invalid_body'],
  },
  'POST /api/multiparts/list': {
    summary: 'Store every part, all or none',
    body: {
      'multipart/form-data': {
        schema: { type: 'object', additionalProperties: bytes },
        example: { first: 'One', second: 'Two' },
      },
    },
    responses: { 200: done },
  },
  'GET /api/multiparts': {
    summary: 'All stored files',
    responses: {
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
    responses: {
      200: file('The file; its type follows from the extension of its name.', 'a stored file'),
      206: file('The bytes of the range.', 'a st', 'Content-Range'),
      304: { about: 'The client has it.', headers: fileHeaders },
    },
    errors: ['range_not_satisfiable'],
    isTagged: true,
  },
  'DELETE /api/multiparts/{name}': change('Remove a stored file'),
  'GET /api/todos': list('All todos', 'Todo'),
  'POST /api/todos': create(
    'Create a todo',
    'TodoInput',
    made('It is stored.', `http://localhost:8080/api/todos/${id}`),
  ),
  'GET /api/todos/{id}': record('One todo', 'Todo'),
  'GET /api/articles': list('All articles, by id', 'Article'),
  'GET /api/articles/{id}': record('One article', 'Article'),
  'POST /api/articles': create(
    'Store an article under its id, or under the next one',
    'ArticleInput',
    made('It is stored.', '/articles/3'),
  ),
  'PATCH /api/articles': change('Patch the array of all articles', {
    'application/json-patch+json': {
      schema: refer('JsonPatch'),
      example: [{ op: 'replace', path: '/0/title', value: 'On black ink' }],
    },
  }),
  'PATCH /api/articles/{id}': change('Patch one article', {
    'application/json-patch+json': { schema: refer('JsonPatch') },
    'application/merge-patch+json': { schema: refer('MergePatch') },
  }),
  'GET /articles/{id}': {
    summary: 'Where the Location of an article points',
    responses: { 308: made('It is under /api.', '/api/articles/3') },
  },
  'GET /livez': {
    summary: 'Is the process alive?',
    responses: { 200: uncached('It is.', 'Live') },
  },
  'GET /readyz': {
    summary: 'Should it be sent requests?',
    responses: {
      200: uncached('Yes.', 'Ready'),
      503: {
        ...uncached('No: it stops, or the store is away.', 'Ready'),
        example: { status: 'not ready', checks: { server: 'ok', store: 'does not answer' } },
      },
    },
  },
};
