/** Good requests of every route, for a fuzzer to change: those of the reference, and of GraphQL. */

import { entries, type Entry } from './reference.ts';

/** `<posts>` and the like stand for an id of this run, `<token>` for a token, wherever they are. */
export interface FuzzRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly unknown[];
  /** A form has its boundary and parts; messages follow an upgrade to WebSocket. */
  readonly kind: 'json' | 'form' | 'messages';
  readonly body: unknown;
}

interface FuzzPart {
  /** Header lines without the last line end. */
  readonly head: string;
  readonly content: string;
}

export interface Seed {
  /** How the service answers it when nothing is changed. */
  readonly status: number;
  /** Comes up so many times as often as others. */
  readonly weight: number;
  readonly request: FuzzRequest;
}

const boundary = 'fuzz-frontier';

function get(target: string, headers: FuzzRequest['headers'] = []): FuzzRequest {
  return { method: 'GET', target, headers, kind: 'json', body: undefined };
}

function json(target: string, body: unknown, type = 'application/json'): FuzzRequest {
  return { method: 'POST', target, headers: [['Content-Type', type]], kind: 'json', body };
}

function file(name: string, fileName: string, content: string): FuzzPart {
  const disposition = `Content-Disposition: form-data; name="${name}"; filename="${fileName}"`;
  return { head: `${disposition}\r\nContent-Type: text/plain`, content };
}

function form(target: string, parts: readonly FuzzPart[]): FuzzRequest {
  const type = `multipart/form-data; boundary=${boundary}`;
  return { ...json(target, { boundary, parts }, type), kind: 'form' };
}

/** With the example of each type that its body may have. */
function seedsOf({ method, path, operation }: Entry): readonly Seed[] {
  const statuses = Object.keys(operation.responses).map(Number);
  // Of a redirect, what it leads to is described too.
  const status = statuses.find((each) => each === 308) ?? statuses[0] ?? 0;
  const area = /^\/(?:api\/)?(\w+)/.exec(path)?.[1] ?? '';
  const target = path.replace('{name}', 'part.txt').replace('{id}', `<${area}>`);
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  const needsToken = ['/profile', '/auth/refresh', '/auth/password'].includes(path);
  const headers = needsToken ? [['Authorization', 'Bearer <token>']] : [];
  if (bodies.length === 0) {
    return [{ status, weight: 1, request: { ...get(target, headers), method } }];
  }
  return bodies.map(([type, { example }]) => {
    if (type !== 'multipart/form-data') {
      const request = { ...json(target, example, type), method };
      const all = [...request.headers, ...headers];
      // A store in memory has no account whose password changes (R51).
      const usual = path === '/auth/password' ? 403 : status;
      return { status: usual, weight: 3, request: { ...request, headers: all } };
    }
    // The name of a file is text (R18).
    const parts = Object.entries(example as Record<string, string>).map(([name, content]) =>
      name === 'name' ? field(name, content) : file(name, `${name}.txt`, content),
    );
    return { status, weight: 3, request: form(target, parts) };
  });
}

const queries = {
  list: '{ allPosts { id title content author { name } comments { content } } }',
  find:
    'query Find($id: String!) { postById(postId: $id) { ...P author { posts { ...P } } } } ' +
    'fragment P on Post { id title status createdAt @include(if: true) authorId }',
  page: 'query ($first: Int, $after: ID) { allPosts(first: $first, after: $after) { id title } }',
  create: 'mutation ($input: CreatePostInput!) { createPost(createPostInput: $input) }',
  comment: 'mutation ($input: CommentInput!) { addComment(commentInput: $input) }',
  upload: 'mutation ($file: Upload!) { upload(file: $file) }',
  introspection: '{ __schema { types { name fields { name type { name ofType { name } } } } } }',
  subscription: 'subscription { commentAdded { id content postId } }',
};

function graphql(query: string, variables?: unknown): FuzzRequest {
  return json('/graphql', { query, variables });
}

function field(name: string, value: unknown): FuzzPart {
  return {
    head: `Content-Disposition: form-data; name="${name}"`,
    content: JSON.stringify(value),
  };
}

function socket(protocol: string, messages: readonly unknown[]): FuzzRequest {
  const headers = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
    ['Sec-WebSocket-Version', '13'],
    ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
    ['Sec-WebSocket-Protocol', protocol],
  ] as const;
  return { ...get('/graphql', headers), kind: 'messages', body: messages };
}

const upload = { query: queries.upload, variables: { file: null } };
const input = { postId: '<posts>', content: 'A text — with "quotes", 😀 and\nlines' };

const overHttp: readonly FuzzRequest[] = [
  graphql(queries.list),
  graphql(queries.find, { id: '<posts>' }),
  graphql(queries.page, { first: 2, after: '<posts>' }),
  graphql(queries.introspection),
  graphql(queries.create, { input: { title: 'Hello fuzz', content: input.content } }),
  graphql(queries.comment, { input }),
  json('/graphql', [
    { query: queries.find, operationName: 'Find', variables: { id: '<posts>' } },
    { query: '{ __typename }', extensions: {} },
    { query: '{ nothing }' },
  ]),
  form('/graphql', [
    field('operations', upload),
    field('map', { 0: ['variables.file'] }),
    file('0', 'by-graphql.txt', 'content'),
  ]),
  form('/graphql', [
    field('operations', [upload, { query: '{ a }' }]),
    field('map', { a: ['0.variables.file'] }),
    file('a', 'batch.svg', '<svg/>'),
  ]),
  get(`/graphql?query=${encodeURIComponent(queries.subscription)}`, [
    ['Accept', 'text/event-stream'],
  ]),
  get(`/graphql?query=${encodeURIComponent(queries.find)}&variables=%7B%22id%22:%22x%22%7D`),
];

/** The words of each protocol for beginning an operation and for ending it. */
const words = [
  ['graphql-transport-ws', 'subscribe', 'complete', { type: 'ping', payload: { a: 1 } }],
  ['graphql-ws', 'start', 'stop', { type: 'connection_terminate' }],
] as const;
const overSockets = words.map(([protocol, begin, end, last]) =>
  socket(protocol, [
    { type: 'connection_init', payload: { a: 1 } },
    { id: '1', type: begin, payload: { query: queries.subscription } },
    { id: '2', type: begin, payload: { query: queries.comment, variables: { input } } },
    { id: '3', type: 'subscribe', payload: { query: queries.find, variables: { id: 'x' } } },
    { id: '1', type: end },
    last,
  ]),
);

/** All operations of a patch, on an article. */
const articlePatch = [
  { op: 'test', path: '/id', value: 1 },
  { op: 'replace', path: '/title', value: 'New' },
  { op: 'add', path: '/tags/-', value: 'x' },
  { op: 'copy', from: '/tags/0', path: '/note' },
  { op: 'move', from: '/note', path: '/content' },
  { op: 'remove', path: '/tags/0' },
];

const pages = ['/graphql/schema.graphql', '/graphql-ui/inkwell.css', '/docs/start.js', '/'];

/** What removes comes last: it takes away what others read. */
export const seeds: readonly Seed[] = [
  ...overHttp.map((request) => ({ status: 200, weight: 2, request })),
  ...overSockets.map((request) => ({ status: 101, weight: 4, request })),
  ...pages.map((path) => ({ status: 200, weight: 1, request: get(path) })),
  ...['/graphql-ui', '/docs'].map((path) => ({ status: 308, weight: 1, request: get(path) })),
  {
    status: 204,
    weight: 4,
    request: {
      ...json('/api/articles/1', articlePatch, 'application/json-patch+json'),
      method: 'PATCH',
    },
  },
  ...entries.flatMap(seedsOf),
];
