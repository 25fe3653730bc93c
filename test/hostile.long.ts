/**
 * The payloads that are known to stop servers like this one, sent to the program one after the
 * other, while another client wants a greeting every 50 ms and gets it.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logIn } from './support/login.js';
import { assertServed, describeGap, startProber } from './support/prober.js';
import { runProgram } from './support/program.js';

interface Payload {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly type?: string;
  readonly body: string | Buffer;
  readonly status: number;
  /** What the response says. */
  readonly says?: RegExp;
}

const graphql = (query: string, variables?: unknown): Pick<Payload, 'path' | 'body'> => {
  return { path: '/graphql', body: JSON.stringify({ query, variables }) };
};
const patch = { method: 'PATCH', path: '/api/articles/1', type: 'application/json-patch+json' };
const jsonEndpoints = ['/posts', '/api/todos', '/api/articles', '/auth/login', '/graphql'];
const cyclic = `{allPosts{${'author{posts{'.repeat(5)}id${'}'.repeat(12)}`;
const fragments = Array.from({ length: 120 }, (_, at) => {
  return `fragment F${at} on Post { ...F${at + 1} ...F${at + 1} }`;
});
const unknown = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at}`, at]));
const copies = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }));
const replacing = Array.from({ length: 900 }, () => ({ op: 'copy', from: '/a', path: '/b' }));
const aliases = Array.from({ length: 4_000 }, (_, at) => `a${at}: content`).join(' ');
const frontier = '--frontier\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n';
const form = 'multipart/form-data; boundary=frontier';

const payloads: readonly Payload[] = [
  // GraphQL is loaded with the first request that needs it.
  {
    name: 'nothing odd',
    ...graphql('{ allPosts { author { name } } }'),
    status: 200,
    says: /data/,
  },
  {
    name: 'a cycle of the schema in 136 bytes, over 100 posts by two authors',
    ...graphql(cyclic),
    status: 200,
    says: /PAYLOAD_TOO_LARGE/,
  },
  {
    name: 'the same twenty times in a batch',
    path: '/graphql',
    body: JSON.stringify(Array.from({ length: 20 }, () => ({ query: cyclic }))),
    status: 200,
    says: /PAYLOAD_TOO_LARGE/,
  },
  { name: 'a document deeper than the stack', ...graphql('{a'.repeat(300_000)), status: 200 },
  {
    name: 'fragments that double at each level',
    ...graphql(`
      {
        allPosts {
          ...F0
        }
      }
      ${fragments.join(' ')}
      fragment F120 on Post {
        id
      }
    `),
    status: 200,
    says: /too often/,
  },
  {
    name: 'sixty thousand members that an input does not have',
    ...graphql('mutation ($i: CreatePostInput!) { createPost(createPostInput: $i) }', {
      i: unknown,
    }),
    status: 413,
    says: /^.{0,20000}$/s,
  },
  { name: 'fields by the ten thousand', ...graphql(`{ ${'x '.repeat(500_000)} }`), status: 200 },
  { name: 'aliases by the thousand', ...graphql(`{ allPosts { ${aliases} } }`), status: 200 },
  {
    name: 'directives by the thousand',
    ...graphql(`{ allPosts { id ${'@skip(if: false) '.repeat(2_000)} } }`),
    status: 200,
  },
  {
    name: 'a document of comments',
    ...graphql(`
      {
        __typename
      }
      ${'#\n'.repeat(300_000)}
    `),
    status: 200,
  },
  {
    name: 'a batch of ten thousand',
    path: '/graphql',
    body: JSON.stringify(Array.from({ length: 10_000 }, () => ({ query: '{ __typename }' }))),
    status: 413,
  },
  ...jsonEndpoints.flatMap((path): readonly Payload[] => [
    { name: `a mebibyte of brackets to ${path}`, path, body: '['.repeat(1_000_000), status: 400 },
    {
      name: `a mebibyte of members to ${path}`,
      path,
      body: `{${'"a":{'.repeat(200_000)}`,
      status: 400,
    },
    { name: `a body that is too long to ${path}`, path, body: ' '.repeat(2_000_000), status: 413 },
  ]),
  {
    name: 'a patch that doubles its document',
    ...patch,
    body: JSON.stringify([{ op: 'add', path: '/a', value: ['x'] }, ...copies]),
    status: 413,
  },
  {
    name: 'a patch that fills the same place again and again',
    ...patch,
    body: JSON.stringify([{ op: 'add', path: '/a', value: ['x'.repeat(50_000)] }, ...replacing]),
    status: 413,
  },
  {
    name: 'a patch of twenty thousand operations',
    ...patch,
    body: `[${Array.from({ length: 20_000 }, () => '{"op":"test","path":"","value":1}').join()}]`,
    status: 413,
  },
  {
    name: 'a hundred thousand parts',
    path: '/api/multiparts/list',
    type: form,
    body: `${frontier.repeat(100_000)}--frontier--\r\n`,
    status: 413,
  },
  {
    name: 'a header of a part that does not end in time',
    path: '/api/multiparts/list',
    type: form,
    body: `--frontier\r\nContent-Disposition: form-data; name="a"\r\nX: ${'x'.repeat(50_000)}`,
    status: 400,
  },
  {
    name: 'content made of beginnings of the boundary',
    path: '/api/multiparts/list',
    type: form,
    body: `${frontier.slice(0, -2)}${'\r\n--frontie'.repeat(500_000)}\r\n--frontier--\r\n`,
    status: 200,
  },
  {
    name: 'forty thousand places in a map of files',
    path: '/graphql',
    type: form,
    body: [
      '--frontier\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"{a}"}\r\n',
      '--frontier\r\nContent-Disposition: form-data; name="map"\r\n\r\n',
      `{"0":[${Array.from({ length: 40_000 }, (_, at) => `"variables.a${at}"`).join()}]}`,
      '\r\n--frontier--\r\n',
    ].join(''),
    status: 400,
  },
  {
    name: 'a password of a mebibyte',
    path: '/auth/login',
    body: JSON.stringify({ username: 'user', password: 'x'.repeat(1_000_000) }),
    status: 401,
  },
  {
    name: 'nothing but line ends before the first part',
    path: '/api/multiparts/list',
    type: form,
    body: '\r\n'.repeat(2_000_000),
    status: 400,
  },
];

test('no known payload stops the service, or keeps others waiting', async (t) => {
  const program = await runProgram(t, { measured: true });
  const { port } = await program.listening();
  const url = `http://127.0.0.1:${port}`;
  await addPosts(url, 97);
  const before = await program.measure();
  const prober = await startProber(t, { url, pid: program.child.pid });
  for (const { name, method = 'POST', path, type = 'application/json', body, ...due } of payloads) {
    const started = performance.now();
    const response = await fetch(url + path, { method, headers: { 'Content-Type': type }, body });
    const text = await response.text();
    const milliseconds = (performance.now() - started).toFixed();
    const { heldLoop } = await program.measure();
    t.diagnostic(
      `${name}: ${response.status} in ${milliseconds} ms, loop ${heldLoop.toFixed()} ms`,
    );
    assert.equal(response.status, due.status, `${name}: ${text.slice(0, 300)}`);
    assert.match(text, due.says ?? /^.{0,2048}$/s, name);
  }
  const gap = await prober.stop();
  const after = await program.measure();
  const grown = (after.resident - before.resident) >> 20;
  t.diagnostic(`/hello ${describeGap(gap)}, memory ${grown} MiB up`);
  assertServed(gap);
  assert.ok(grown < 200, `${grown} MiB`);
  assert.equal(program.errors(), '');
  assert.doesNotMatch(program.output(), /"level":"error"/);
});

/** By the two accounts in turn, who are authors. */
async function addPosts(url: string, count: number): Promise<void> {
  const tokens = [await logIn({ url }), await logIn({ url }, 'admin')];
  const body = JSON.stringify({ title: 'a', content: 'b' });
  for (let number = 0; number < count; number += 1) {
    const authorization = `Bearer ${tokens[number % 2]}`;
    const headers = { 'Content-Type': 'application/json', authorization };
    assert.equal((await fetch(`${url}/posts`, { method: 'POST', headers, body })).status, 201);
  }
}
