/**
 * Attacks on the turns of others and on memory that has no end in sight (R47): work that is long
 * for few bytes, requests that wait, and connections that need not move. All together they have
 * fewer connections than a heap of 256 MiB allows.
 */

import { connect } from 'node:net';
import {
  type Attack,
  form,
  get,
  held,
  many,
  post,
  repeated,
  silent,
  sockets,
  type Target,
} from './attacks.ts';

const jsonPatch = 'application/json-patch+json';
const mergePatch = 'application/merge-patch+json';

/** Documents that are stored before, by the ids of their articles. */
export const documents: Readonly<Record<string, () => string>> = {
  11: () => `{"id":11,"title":"t",${members('\\n\\t'.repeat(6))}}`,
  12: () => `{"id":12,"title":"t",${members('a name that is plain ')}}`,
  13: () => `{"id":13,"title":"t","a":[${many(49_000, String).join()}]}`,
  14: () => '{"id":14,"title":"t"}',
};

/** Titles that take long to be written in upper case, stored before. */
export const longTitle = 'ΐ'.repeat(250_000);

function members(prefix: string, value = '1'): string {
  return many(24_000, (at) => `"${prefix}${at}":${value}`).join();
}

/** An attack with so many connections. */
export type Sized = (connections: number) => Attack;

/** The same body again and again: made once, as late as possible. */
function patches(place: string, type: string, make: () => string): Sized {
  let body: string | undefined;
  const path = (): string => `/api/articles${place}`;
  return (count) => repeated('PATCH', { path, type, body: () => (body ??= make()) }, count);
}

function posts(path: string, make: (round: number) => string): Sized {
  return (count) => repeated('POST', { path: () => path, body: make, headers: toHeaders }, count);
}

function toHeaders(_: number, { token }: Target): Readonly<Record<string, string>> {
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

/** No two are equal, so that no response is made for several. */
function heavyQuery(round: number): object {
  const fields = many(20, (at) => `a${at}: allPosts(first: 600) { id }`);
  return { query: `{ ${fields.join(' ')} }`, extensions: { round } };
}

/** An id that no post has. */
function nothing(round: number): string {
  return `019b8d5e-9c00-7000-8000-${(0x10_00_00_00_00_00 + round).toString(16)}`;
}

function afterNothing(round: number): object {
  const fields = many(
    50,
    (at) => `a${at}: allPosts(first: 1, after: "${nothing(round + at)}") { id }`,
  );
  return { query: `{ ${fields.join(' ')} }` };
}

/** Of a query that takes a variable, which is long. */
const longVariable = (number: number, length: number): object => ({
  query: 'subscription ($p: String) { commentAdded(postId: $p) { id } }',
  variables: { p: `${number}${'x'.repeat(length)}` },
});

function eventStream(payload: object): string {
  const body = post('/graphql', JSON.stringify(payload));
  return body.replace('Host: a', 'Host: a\r\nAccept: text/event-stream');
}

const init = ({ token }: Target): string =>
  JSON.stringify({
    type: 'connection_init',
    ...(token !== undefined && { payload: { Authorization: `Bearer ${token}` } }),
  });
const subscribe = (id: number | string, payload: object): string =>
  JSON.stringify({ id: String(id), type: 'subscribe', payload });

/** Sends chunks of a byte as fast as they are taken, and connects again at once. */
function chunks(path: string, type: string): Sized {
  const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n`;
  const bytes = Buffer.from('1\r\n \r\n'.repeat(100_000));
  const open = ({ port }: { readonly port: number }) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).resume();
    const more = (): void => {
      if (!socket.destroyed && socket.write(bytes)) setImmediate(more);
    };
    socket.once('connect', () => socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`));
    return socket.once('connect', more).on('drain', more);
  };
  return (count) => held(count, open, 0);
}

/** Makes a post with many comments, and removes it. */
const removals: Attack = async ({ port }) => {
  const url = `http://127.0.0.1:${port}`;
  const headers = { 'Content-Type': 'application/json' };
  const fields = many(50, (at) => `a${at}: addComment(commentInput: $i)`);
  const query = `mutation ($i: CommentInput!) { ${fields.join(' ')} }`;
  const send = (path: string, body: unknown): Promise<Response> =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const round = async (): Promise<void> => {
    const { headers: given } = await send('/posts', { title: 't', content: 'c' });
    const path = given.get('location') ?? '/posts/none';
    const variables = { i: { postId: path.slice('/posts/'.length), content: 'c' } };
    const batch = many(20, () => ({ query, variables }));
    for (let thousand = 0; thousand < 20; thousand += 1)
      await (await send('/graphql', batch)).text();
    await fetch(url + path, { method: 'DELETE' });
  };
  for (;;) await round().catch(() => undefined);
};

const smallMerge = (): string => '{"x":"12345"}';
const smallTest = (): string => '[{"op":"test","path":"/title","value":"t"}]';
const smallAdd = (): string => '[{"op":"add","path":"/0/x","value":1}]';
const nulls = (): string => `{${members('a name that is plain ', 'null')},"title":"t"}`;
const moves = (): string =>
  JSON.stringify(many(1_000, () => ({ op: 'move', from: '/a/0', path: '/a/-' })));
const waiting = (): string => {
  const value = JSON.parse(`[${'{},'.repeat(5_380)}{}]`) as unknown;
  return JSON.stringify([{ op: 'add', path: '/w', value }]);
};

/** An upload whose file goes to many places, each in a variable that is only in the text. */
function upload(): string {
  const operations = { query: many(5_000, (at) => `$v${at}`).join(' '), variables: {} };
  const map = { 0: many(5_000, (at) => `variables.v${at}`) };
  const parts = Object.entries({ operations, map }).map(
    ([name, value]) => `name="${name}"\r\n\r\n${JSON.stringify(value)}`,
  );
  const disposition = '--b\r\nContent-Disposition: form-data; ';
  const all = [...parts, 'name="0"; filename="f"\r\n\r\nf'];
  return `${all.map((part) => `${disposition}${part}\r\n`).join('')}--b--\r\n`;
}

/** Each alone, with as many connections as are asked for. */
export const sized = {
  'merge patches of a large article, names with escapes': patches('/11', mergePatch, smallMerge),
  'merge patches of a large article, plain names': patches('/12', mergePatch, smallMerge),
  'JSON Patches of a large article': patches('/11', jsonPatch, smallTest),
  'merge patches that remove what is not there': patches('/14', mergePatch, nulls),
  'JSON Patches of a thousand moves': patches('/13', jsonPatch, moves),
  'patches of 16 KiB that wait': patches('/14', jsonPatch, waiting),
  'patches of all articles': patches('', jsonPatch, smallAdd),
  'posts of names with escapes': posts('/posts', () => `{${members('\\n\\t')}}`),
  'posts of long numbers': posts('/posts', () => {
    const numbers = many(16_000, () => '0.5000000000000000000000').join();
    return `{"a":[${numbers}]}`;
  }),
  'queries that are long': posts('/graphql', (round) => JSON.stringify(heavyQuery(round))),
  'batches of one query': posts('/graphql', (round) => JSON.stringify([heavyQuery(round)])),
  'queries of lists without records': posts('/graphql', (round) => {
    const fields = many(50, (at) => `a${at}: allPosts { comments { id } }`);
    return JSON.stringify({ query: `{ ${fields.join(' ')} }`, extensions: { round } });
  }),
  'idle subscriptions to different posts': (count) =>
    sockets(count, 'graphql-transport-ws', (number, target) => [
      init(target),
      ...many(100, (at) => subscribe(at, longVariable(100 * number + at, 0))),
    ]),
  'long pages': (count) =>
    repeated('GET', { path: (_, round) => `/posts?limit=1000&after=${nothing(round)}` }, count),
  'long Accept headers': (count) =>
    repeated(
      'GET',
      { path: () => '/posts', headers: () => ({ Accept: 'a/a,'.repeat(3_700) }) },
      count,
    ),
  'queries on WebSockets': (count) =>
    sockets(count, 'graphql-transport-ws', (number, target) => [
      init(target),
      ...many(20, (at) => subscribe(at, heavyQuery(1e6 * (number + 1) + at))),
    ]),
  'subscriptions of long variables on WebSockets': (count) =>
    sockets(count, 'graphql-transport-ws', (number, target) => [
      init(target),
      ...many(80, (at) => subscribe(at, longVariable(100 * number + at, 62_000))),
    ]),
  'event streams of long variables': (count) =>
    silent(count, () => eventStream(longVariable(0, 255_000))),
  'requests behind an event stream': (count) =>
    silent(count, () => {
      const stream = eventStream({ query: 'subscription { commentAdded { id } }' });
      return stream + get('/hello').repeat(1_900);
    }),
  'pages after nothing': (count) =>
    repeated('GET', { path: (_, round) => `/posts?limit=1&after=${nothing(round)}` }, count),
  'documents of a page after nothing': posts('/graphql', (round) =>
    JSON.stringify(afterNothing(round * 50)),
  ),
  'batches of pages after nothing': posts('/graphql', (round) =>
    JSON.stringify(many(20, () => afterNothing(round * 50))),
  ),
  'chunks of a byte, a post': chunks('/posts', 'application/json'),
  'chunks of a byte, an upload': chunks('/api/multiparts/list', form),
  'chunks of a byte, a query': chunks('/graphql', 'application/json'),
  'chunks of a byte, unread': chunks('/hello', 'application/json'),
  'posts of many comments, removed': (count) => (target) =>
    Promise.all(many(count, () => removals(target))),
  'logins from sixty addresses': (count) =>
    repeated(
      'POST',
      {
        path: () => '/auth/login',
        body: (round) => JSON.stringify({ username: `nobody${round}`, password: 'wrong' }),
        headers: (round) => ({ 'X-Forwarded-For': `10.0.${round % 60}.1` }),
      },
      count,
    ),
  'subscriptions of many aliases': (count) =>
    sockets(count, 'graphql-transport-ws', (number, target) => [
      init(target),
      ...many(90, (at) => {
        const fields = many(48, (alias) => `a${alias}: content`).join(' ');
        const query = `subscription { commentAdded { b${number}_${at}: content ${fields} } }`;
        return subscribe(at, { query });
      }),
    ]),
  'comments for them': (count) =>
    repeated(
      'POST',
      {
        path: ({ posts: [id = ''] }) => `/posts/${id}/comments`,
        body: () => JSON.stringify({ content: 'x'.repeat(76_000) }),
      },
      count,
    ),
  'titles in upper case': posts('/graphql', (round) => {
    const page = 'allPosts(first: 30) { title }';
    return JSON.stringify({ query: `{ a: ${page} b: ${page} }`, extensions: { round } });
  }),
  'uploads to many places': (count) =>
    repeated('POST', { path: () => '/graphql', type: form, body: upload }, count),
} satisfies Readonly<Record<string, Sized>>;

/** How many connections each has in a crowd that a heap of 256 MiB allows; otherwise 10. */
const connections: Readonly<Partial<Record<keyof typeof sized, number>>> = {
  'posts of names with escapes': 3,
  'posts of long numbers': 3,
  'queries on WebSockets': 5,
  'subscriptions of long variables on WebSockets': 1,
  'event streams of long variables': 6,
  'pages after nothing': 5,
  'documents of a page after nothing': 1,
  'batches of pages after nothing': 1,
  'chunks of a byte, a post': 3,
  'chunks of a byte, an upload': 3,
  'chunks of a byte, a query': 3,
  'chunks of a byte, unread': 3,
  'posts of many comments, removed': 1,
  'logins from sixty addresses': 16,
  'subscriptions of many aliases': 5,
  'comments for them': 1,
};

/** Shapes of the bench alone: all at once already take what two processors have. */
const ofBench: ReadonlySet<string> = new Set([
  'queries of lists without records',
  'idle subscriptions to different posts',
  'long pages',
  'long Accept headers',
  'uploads to many places',
]);

export const turnAttacks: readonly Attack[] = Object.entries(sized)
  .filter(([name]) => !ofBench.has(name))
  .map(([name, attack]) => attack(connections[name as keyof typeof sized] ?? 10));
