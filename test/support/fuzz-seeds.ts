/** Good requests of every route, for a fuzzer to change: those of the reference, and of GraphQL. */

import type { Random } from './fuzz-mutate.js';
import { entries, type Entry } from './reference.js';

export interface FuzzPart {
  /** Header lines without the last line end. */
  readonly head: string;
  readonly content: string;
}

export type FuzzBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'form'; readonly parts: readonly FuzzPart[]; readonly boundary: string };

export interface FuzzRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: FuzzBody;
  /** Messages that follow an upgrade to WebSocket. */
  readonly messages?: readonly unknown[];
}

/** What a request can be made of: ids of this run, and a token. */
export interface Known {
  readonly random: Random;
  readonly ids: Readonly<Record<'posts' | 'comments' | 'todos' | 'articles', readonly string[]>>;
  readonly token: string;
}

export interface Seed {
  /** How the service answers it when nothing is changed. */
  readonly status: number;
  /** Comes up so many times as often as others. */
  readonly weight: number;
  make(known: Known): FuzzRequest;
}

const boundary = 'fuzz-frontier';

function get(target: string, headers: FuzzRequest['headers'] = []): FuzzRequest {
  return { method: 'GET', target, headers, body: { kind: 'none' } };
}

function send(route: readonly [string, string], body: FuzzBody, type: string): FuzzRequest {
  const [method, target] = route;
  return { method, target, headers: [['Content-Type', type]], body };
}

function json(target: string, value: unknown): FuzzRequest {
  return send(['POST', target], { kind: 'json', value }, 'application/json');
}

function file(name: string, fileName: string, content: string): FuzzPart {
  const disposition = `Content-Disposition: form-data; name="${name}"; filename="${fileName}"`;
  return { head: `${disposition}\r\nContent-Type: text/plain`, content };
}

function form(target: string, parts: readonly FuzzPart[]): FuzzRequest {
  const type = `multipart/form-data; boundary=${boundary}`;
  return send(['POST', target], { kind: 'form', parts, boundary }, type);
}

/** With the example of each type that its body may have; what removes takes the last record. */
function seedsOf({ method, path, operation }: Entry): readonly Seed[] {
  const statuses = Object.keys(operation.responses).map(Number);
  // Of a redirect, what it leads to is described too.
  const status = statuses.find((each) => each === 308) ?? statuses[0] ?? 0;
  const area = /^\/(?:api\/)?(\w+)/.exec(path)?.[1] as keyof Known['ids'];
  const target = ({ random, ids }: Known): string =>
    path.replace('{name}', 'part.txt').replace('{id}', () => {
      return method === 'DELETE' ? (ids[area].at(-1) ?? '') : random.pick(ids[area]);
    });
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  if (bodies.length === 0) {
    const make = (known: Known): FuzzRequest => {
      const headers = [['Authorization', `Bearer ${known.token}`]] as const;
      return { ...get(target(known), path === '/profile' ? headers : []), method };
    };
    return [{ status, weight: 1, make }];
  }
  return bodies.map(([type, { example }]) => ({
    status,
    weight: 3,
    make(known) {
      if (type !== 'multipart/form-data') {
        return send([method, target(known)], { kind: 'json', value: example }, type);
      }
      const parts = Object.entries(example as Record<string, string>).map(([name, content]) =>
        file(name, `${name}.txt`, content),
      );
      return form(target(known), parts);
    },
  }));
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
  return { ...get('/graphql', headers), messages };
}

/** With the id of a post. */
type MakeGraphql = (id: string, random: Random) => FuzzRequest;

const upload = { query: queries.upload, variables: { file: null } };
const content = 'A text — with "quotes", 😀 and\nlines';

const overHttp: readonly MakeGraphql[] = [
  () => graphql(queries.list),
  (id) => graphql(queries.find, { id }),
  (id) => graphql(queries.page, { first: 2, after: id }),
  () => graphql(queries.introspection),
  () => graphql(queries.create, { input: { title: 'Hello fuzz', content } }),
  (postId) => graphql(queries.comment, { input: { postId, content } }),
  (id) =>
    json('/graphql', [
      { query: queries.find, operationName: 'Find', variables: { id } },
      { query: '{ __typename }', extensions: {} },
      { query: '{ nothing }' },
    ]),
  () =>
    form('/graphql', [
      field('operations', upload),
      field('map', { 0: ['variables.file'] }),
      file('0', 'by-graphql.txt', 'content'),
    ]),
  () =>
    form('/graphql', [
      field('operations', [upload, { query: '{ a }' }]),
      field('map', { a: ['0.variables.file'] }),
      file('a', 'batch.svg', '<svg/>'),
    ]),
  () => {
    const request = graphql(queries.subscription);
    return { ...request, headers: [...request.headers, ['Accept', 'text/event-stream']] };
  },
  () => {
    const search = new URLSearchParams({ query: queries.find, variables: '{"id":"x"}' });
    return get(`/graphql?${search.toString()}`);
  },
];

const overSockets: readonly MakeGraphql[] = [
  (postId) =>
    socket('graphql-transport-ws', [
      { type: 'connection_init', payload: { a: 1 } },
      { type: 'ping', payload: { a: 1 } },
      { id: '1', type: 'subscribe', payload: { query: queries.subscription } },
      {
        id: '2',
        type: 'subscribe',
        payload: { query: queries.comment, variables: { input: { postId, content } } },
      },
      { id: '3', type: 'subscribe', payload: { query: queries.find, variables: { id: 'x' } } },
      { id: '1', type: 'complete' },
    ]),
  (postId, random) =>
    socket('graphql-ws', [
      { type: 'connection_init', payload: random.oneIn(5) ? { rejectMessage: 'no' } : {} },
      { id: '1', type: 'start', payload: { query: queries.subscription } },
      {
        id: '2',
        type: 'start',
        payload: { query: queries.comment, variables: { input: { postId, content } } },
      },
      { id: '3', type: 'subscribe', payload: { query: '{ __typename }' } },
      { id: '1', type: 'stop' },
      { type: 'connection_terminate' },
    ]),
];

function graphqlSeed(make: MakeGraphql, status: number, weight: number): Seed {
  return { status, weight, make: ({ random, ids }) => make(random.pick(ids.posts), random) };
}

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
  ...overHttp.map((make) => graphqlSeed(make, 200, 2)),
  ...overSockets.map((make) => graphqlSeed(make, 101, 4)),
  ...pages.map((path) => ({ status: 200, weight: 1, make: () => get(path) })),
  ...['/graphql-ui', '/docs'].map((path) => ({ status: 308, weight: 1, make: () => get(path) })),
  {
    status: 204,
    weight: 4,
    make: () => {
      const body = { kind: 'json', value: articlePatch } as const;
      return send(['PATCH', '/api/articles/1'], body, 'application/json-patch+json');
    },
  },
  ...entries.flatMap(seedsOf),
];
