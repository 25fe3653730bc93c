/**
 * Every attack on memory at once, on small heaps with the default limits: the process stays
 * below the number that its first line names, and serves others meanwhile and afterwards.
 *
 *     SOAK_SECONDS=120 SOAK_HEAP=512 node --test dist-test/soak.long.js
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { runProgram } from './support/program.js';

const seconds = Number(process.env['SOAK_SECONDS'] ?? 120);
const heaps = (process.env['SOAK_HEAP'] ?? '256,512').split(',');

/** Resident memory at its highest, in MiB, as the system has it. */
function residentMaxMiB(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

async function fill(url: string): Promise<readonly string[]> {
  const send = (path: string, body: string | FormData): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      body,
      ...(typeof body === 'string' && { headers: { 'Content-Type': 'application/json' } }),
    });
  const form = new FormData();
  form.append('f', new Blob([Buffer.alloc(8 * 1024 * 1024)]), 'large.bin');
  assert.equal((await send('/api/multiparts/list', form)).status, 200);
  const locations: string[] = [];
  for (let count = 0; count < 12; count += 1) {
    const body = JSON.stringify({ title: 't', content: 'x'.repeat(900_000) });
    const response = await send('/posts', body);
    assert.equal(response.status, 201);
    locations.push(response.headers.get('location') ?? '');
  }
  return locations.map((location) => location.slice('/posts/'.length));
}

// Each attack has the shape of one anonymous client that goes on until it is told to stop: it opens
// connections, asks for much, and reads nothing.

interface Target {
  readonly port: number;
  /** Ids of posts that are there. */
  readonly posts: readonly string[];
}

type Attack = (target: Target, signal: AbortSignal) => Promise<void>;

const megabyte = 1_000_000;
const many = <T>(length: number, make: (at: number) => T): T[] =>
  Array.from({ length }, (_, at) => make(at));

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
}

function post(path: string, body: string, type = 'application/json'): string {
  const length = `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}`;
  return `POST ${path} HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n${body}`;
}

/** So many connections, each made anew some time after it has ended. */
function held(count: number, open: (target: Target, number: number) => Duplex | WebSocket): Attack {
  return async (target, signal) => {
    const all = new Set<ReturnType<typeof open>>();
    const begin = (number: number): void => {
      if (signal.aborted) return;
      const socket = open(target, number);
      all.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        all.delete(socket);
        setTimeout(begin, 200, number).unref();
      });
    };
    for (let number = 0; number < count; number += 1) begin(number);
    while (!signal.aborted) await delay(200);
    for (const socket of all)
      void (socket instanceof WebSocket ? socket.terminate() : socket.destroy());
  };
}

/** Connections that send `bytes` and read nothing. */
function silent(count: number, make: () => string): Attack {
  let bytes: string | undefined;
  return held(count, (target) => {
    const sent = (bytes ??= make());
    const socket = connect(target.port, '127.0.0.1').pause();
    return socket.once('connect', () => socket.write(sent));
  });
}

/** WebSockets that send these messages and read nothing. */
function sockets(
  count: number,
  protocol: string,
  messages: (number: number) => readonly string[],
): Attack {
  return held(count, ({ port }, number) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, [protocol]);
    return socket.on('open', () => {
      for (const message of messages(number)) socket.send(message);
      socket.pause();
    });
  });
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

/** Subscribers, each to a selection of its own, with queries whose results can be large. */
function subscribe(number: number): readonly string[] {
  const fields = many(16, (at) => `a${number}_${at}: content`);
  const query = `subscription { commentAdded { ${fields.join(' ')} } }`;
  const large = 'query Q($v: [String]) { allPosts { content } }';
  const variables = { v: 'x'.repeat(60_000) };
  const queries = many(20, (id) =>
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
  return many(16, (id) => `{"id":"${id}","type":"start","payload":${payload}}`);
}

function oddArticle(round: number): string {
  const shapes = [
    () => many(60_000, (at) => `"a${at}":{"1023":1}`).join(','),
    () => many(30_000, (at) => `"k${round}_${at}":{"${at}x":[${at}.5]}`).join(','),
    () => `"a":[${'[],'.repeat(300_000)}[]]`,
  ];
  return `{"title":"t",${shapes[round % shapes.length]?.() ?? ''}}`.slice(0, megabyte * 2);
}

const form = 'multipart/form-data; boundary=b';
const partHead = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n';
const oneField = '{"query":"{allPosts{content}}"}';

const attacks: Readonly<Record<string, Attack>> = {
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
  'uploads that stop before their end': silent(200, () => {
    const whole = post('/api/multiparts/list', `${partHead}${'x'.repeat(3 * megabyte)}`, form);
    return whole.slice(0, 2_900_000);
  }),
  'heads that never end': silent(500, () => `${get('/').slice(0, -2)}${'a:\r\n'.repeat(3_900)}`),
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
    const parts = many(900, (at) => `--b\r\n${'x'.repeat(800)}:\r\n${at}`);
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
    const lines = many(90, (at) => `x-${at}: ${'v'.repeat(150)}\r\n`).join('');
    const head = `POST /posts HTTP/1.1\r\nHost: a\r\nContent-Length: 16384\r\n${lines}\r\n`;
    return head + ' '.repeat(16_000);
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
    body(round) {
      const fields = 'allPosts { id } '.repeat(330);
      return JSON.stringify(many(20, (at) => ({ query: `query Q${round}_${at} { ${fields} }` })));
    },
  }),
  'logins that fail': repeated('POST', {
    path: () => '/auth/login',
    body: (round) => JSON.stringify({ username: `user${round}`, password: 'x'.repeat(1_000) }),
  }),
};

for (const heap of heaps) {
  test(`all attacks at once for ${seconds} s take no more memory than was said, with a heap of ${heap} MiB`, async (t) => {
    if (process.platform !== 'linux') return t.skip('only Linux tells what a process took at most');
    const program = await runProgram(t, { flags: [`--max-old-space-size=${heap}`] });
    const { line, port, url } = await program.listening();
    const { memoryMaxMiB } = JSON.parse(line) as { readonly memoryMaxMiB: number };
    const target: Target = { port, posts: await fill(url) };
    const stop = new AbortController();
    const running = Object.values(attacks).map((attack) => attack(target, stop.signal));
    let served = 0;
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const response = await fetch(`${url}/hello`).catch((error: unknown) => error);
      // The attackers take the time of this process too: some of its requests may come too late.
      if (response instanceof Response && response.status === 200) served += 1;
      assert.equal(program.child.exitCode, null, program.output().slice(-2_000));
      await delay(50);
    }
    stop.abort();
    await Promise.all(running);
    const taken = residentMaxMiB(program.child.pid);
    t.diagnostic(`${taken.toFixed(0)} of ${memoryMaxMiB} MiB; /hello was served ${served} times`);
    assert.equal(program.child.exitCode, null, program.output().slice(-2_000));
    assert.ok(served > 0);
    assert.ok(taken < memoryMaxMiB, `${taken} MiB were taken, ${memoryMaxMiB} named`);
    assert.equal((await fetch(`${url}/posts`)).status, 200);
  });
}
