/**
 * Attacks on memory, each in the shape of one anonymous client that goes on until it is told to
 * stop: it opens connections, asks for much, and reads nothing.
 */

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';

export interface Target {
  readonly port: number;
  /** Ids of posts that are there. */
  readonly posts: readonly string[];
}

export type Attack = (target: Target, signal: AbortSignal) => Promise<void>;

const megabyte = 1_000_000;

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
}

function post(path: string, body: string, type = 'application/json'): string {
  const length = `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}`;
  return `POST ${path} HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n${body}`;
}

/** Connections that send `bytes` and read nothing, `count` at a time, made anew when they end. */
function silent(count: number, bytes: (target: Target) => string | Buffer): Attack {
  return async (target, signal) => {
    const open = new Set<Socket>();
    const sent = bytes(target);
    const begin = (): void => {
      if (signal.aborted) return;
      const socket = connect(target.port, '127.0.0.1');
      open.add(socket);
      socket.pause().on('error', () => undefined);
      socket.once('connect', () => socket.write(sent));
      socket.once('close', () => {
        open.delete(socket);
        setTimeout(begin, 100).unref();
      });
    };
    for (let number = 0; number < count; number += 1) begin();
    while (!signal.aborted) await delay(200);
    for (const socket of open) socket.destroy();
  };
}

interface Repeated {
  readonly path: (target: Target, round: number) => string;
  readonly body?: (round: number) => string;
  readonly type?: string;
}

/** Requests one after the other, whose answers are read and thrown away. */
function repeated(method: string, request: Repeated): Attack {
  const { path, body, type = 'application/json' } = request;
  return async (target, signal) => {
    for (let round = 0; !signal.aborted; round += 1) {
      const url = `http://127.0.0.1:${target.port}${path(target, round)}`;
      const given = body && { body: body(round), headers: { 'Content-Type': type } };
      await fetch(url, { method, ...given })
        .then((response) => response.arrayBuffer())
        .catch(() => undefined);
    }
  };
}

/** WebSockets that send these messages and read nothing, made anew when they end. */
function sockets(
  count: number,
  protocol: string,
  messages: (number: number) => readonly string[],
): Attack {
  return async ({ port }, signal) => {
    const open = new Set<WebSocket>();
    const begin = (number: number): void => {
      if (signal.aborted) return;
      const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, [protocol]);
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('open', () => {
        for (const message of messages(number)) socket.send(message);
        socket.pause();
      });
      socket.on('close', () => {
        open.delete(socket);
        setTimeout(begin, 500, number).unref();
      });
    };
    for (let number = 0; number < count; number += 1) begin(number);
    while (!signal.aborted) await delay(200);
    for (const socket of open) socket.terminate();
  };
}

/** Subscribers, each to a selection of its own, with queries whose results can be large. */
function subscribe(number: number): readonly string[] {
  const fields = Array.from({ length: 16 }, (_, at) => `a${number}_${at}: content`);
  const query = `subscription { commentAdded { ${fields.join(' ')} } }`;
  const large = 'query Q($v: [String]) { allPosts { content } }';
  const variables = { v: 'x'.repeat(60_000) };
  const queries = Array.from({ length: 20 }, (_, id) =>
    JSON.stringify({ id: `q${id}`, type: 'subscribe', payload: { query: large, variables } }),
  );
  const first = JSON.stringify({ id: 's', type: 'subscribe', payload: { query } });
  return ['{"type":"connection_init"}', first, ...queries];
}

/** JSON whose values take 22 times its length. */
const objects = (bytes: number): string => `[${'{},'.repeat(bytes / 3)}{}]`;

/** Operations that wait for a `connection_init` which never comes. */
function wait(): readonly string[] {
  const payload = `{"query":"{ __typename }","extensions":{"a":${objects(50_000)}}}`;
  return Array.from(
    { length: 16 },
    (_, id) => `{"id":"${id}","type":"start","payload":${payload}}`,
  );
}

function oddArticle(round: number): string {
  const shapes = [
    () => Array.from({ length: 60_000 }, (_, at) => `"a${at}":{"1023":1}`).join(','),
    () =>
      Array.from({ length: 30_000 }, (_, at) => `"k${round}_${at}":{"${at}x":[${at}.5]}`).join(','),
    () => `"a":[${'[],'.repeat(300_000)}[]]`,
  ];
  return `{"title":"t",${shapes[round % shapes.length]?.() ?? ''}}`.slice(0, megabyte * 2);
}

const form = 'multipart/form-data; boundary=b';
const partHead = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n';
const oneField = '{"query":"{allPosts{content}}"}';

export const attacks: Readonly<Record<string, Attack>> = {
  'pages of the browser UI, pipelined': silent(40, () => get('/graphql-ui/main.js').repeat(255)),
  'downloads, pipelined': silent(40, () => get('/api/multiparts').repeat(255)),
  'all posts by GraphQL, pipelined': silent(40, () => post('/graphql', oneField).repeat(60)),
  'lists behind writes, pipelined': silent(20, () =>
    (post('/api/todos', '{"title":"t"}') + get('/api/todos')).repeat(127),
  ),
  'small requests, pipelined': silent(20, () => get('/hello').repeat(2_000)),
  'bodies that stop before their end': silent(200, () =>
    post('/posts', 'x'.repeat(megabyte)).slice(0, 900_000),
  ),
  'uploads that stop before their end': silent(200, () =>
    post('/api/multiparts/list', `${partHead}${'x'.repeat(3 * megabyte)}`, form).slice(
      0,
      2_900_000,
    ),
  ),
  'heads that never end': silent(
    500,
    () => `GET / HTTP/1.1\r\nHost: a\r\n${'a:\r\n'.repeat(3_900)}`,
  ),
  'pieces of one byte': silent(10, () => {
    const head = 'POST /posts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
    return `${head}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(100_000)}`;
  }),
  'event streams with large variables': silent(60, () => {
    const query = 'subscription { commentAdded { content } }';
    const body = JSON.stringify({ query, variables: { v: 'x'.repeat(900_000) } });
    return post('/graphql', body).replace('Host: a', 'Host: a\r\nAccept: text/event-stream');
  }),
  'subscriptions and queries on silent WebSockets': sockets(60, 'graphql-transport-ws', subscribe),
  'operations that wait, on the older protocol': sockets(30, 'graphql-ws', wait),
  'long tokens in connection_init': sockets(50, 'graphql-transport-ws', () => {
    const payload = { Authorization: `${'a'.repeat(60_000)}€` };
    return [JSON.stringify({ type: 'connection_init', payload })];
  }),
  'multipart operations of many values': silent(10, () => {
    const operations = `{"query":"{allPosts{content}}","extensions":{"a":${objects(megabyte)}}}`;
    const part = `--b\r\nContent-Disposition: form-data; name="operations"\r\n\r\n${operations}`;
    return post('/graphql', `${part}\r\n--b--\r\n`, form);
  }),
  'small bodies of many values': silent(100, () =>
    post('/graphql', `{"query":"{allPosts{content}}","extensions":{"a":${objects(15_900)}}}`),
  ),
  'logins of a megabyte': silent(20, () =>
    post('/auth/login', JSON.stringify({ username: 'user', password: 'x'.repeat(megabyte) })),
  ),
  'heads of a thousand parts': silent(10, () => {
    const parts = Array.from({ length: 900 }, (_, at) => `--b\r\n${'x'.repeat(800)}:\r\n${at}`);
    return post('/api/multiparts/list', parts.join('\r\n'), form).slice(0, -9);
  }),
  'titles that triple': repeated('POST', {
    path: (_target, round) => (round % 2 === 0 ? '/posts' : '/graphql'),
    body: (round) =>
      round % 2 === 0
        ? JSON.stringify({ title: 'ΐ'.repeat(300_000), content: 'c' })
        : '{"query":"{allPosts(first:50){title}}"}',
  }),
  'patches of all articles': repeated('PATCH', {
    path: () => '/api/articles',
    body: (round) => JSON.stringify([{ op: 'add', path: '/0/x', value: round }]),
    type: 'application/json-patch+json',
  }),
  'documents of many lines': repeated('POST', {
    path: () => '/graphql',
    body: () => JSON.stringify({ query: `${'\n'.repeat(490_000)}{ a b c d e f g h }` }),
  }),
  'heads of lists': repeated('HEAD', { path: () => '/api/articles' }),
  'connections of a hundred header lines': silent(300, () => {
    const lines = Array.from({ length: 90 }, (_, at) => `x-${at}: ${'v'.repeat(150)}\r\n`);
    const head = `POST /posts HTTP/1.1\r\nHost: a\r\nContent-Length: 16384\r\n${lines.join('')}`;
    return `${head}\r\n${' '.repeat(16_000)}`;
  }),
  'comments of a megabyte': repeated('POST', {
    path: ({ posts }, round) => `/posts/${posts[round % posts.length] ?? ''}/comments`,
    body: () => JSON.stringify({ content: 'x'.repeat(900_000) }),
  }),
  'articles of odd shapes': repeated('POST', { path: () => '/api/articles', body: oddArticle }),
  'merge patches with members like indices': repeated('PATCH', {
    path: () => '/api/articles/1',
    body: oddArticle,
    type: 'application/merge-patch+json',
  }),
  'spellings of one id': repeated('GET', {
    path: ({ posts }, round) => {
      const spelled = Array.from(posts[0] ?? '', (letter, at) =>
        (round >> (at % 16)) % 2 === 1 ? `%${letter.charCodeAt(0).toString(16)}` : letter,
      );
      return `/posts/${spelled.join('')}?${'q'.repeat(7_000)}`;
    },
  }),
  'documents of many equal fields': repeated('POST', {
    path: () => '/graphql',
    body: (round) =>
      JSON.stringify(
        Array.from({ length: 20 }, (_, at) => ({
          query: `query Q${round}_${at} { ${'allPosts { id } '.repeat(330)} }`,
        })),
      ),
  }),
  'logins that fail': repeated('POST', {
    path: () => '/auth/login',
    body: (round) => JSON.stringify({ username: `user${round}`, password: 'x'.repeat(1_000) }),
  }),
};
