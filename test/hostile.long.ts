/**
 * The payloads that are known to stop servers like this one, sent to the program one after the
 * other, while another client wants a greeting every 50 ms and gets it.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { many } from './support/attacks.ts';
import { logIn } from './support/login.ts';
import { assertServed, describeGap, startProber } from './support/prober.ts';
import { runProgram } from './support/program.ts';

interface Payload {
  readonly method?: string;
  readonly path: string;
  readonly type?: string;
  readonly body: string;
}

const json = (path: string, value: unknown): Payload => ({ path, body: JSON.stringify(value) });
const graphql = (query: string, variables?: unknown): Payload =>
  json('/graphql', { query, variables });
const batch = (count: number, query: string): Payload =>
  json(
    '/graphql',
    many(count, () => ({ query })),
  );
const patch = (operations: readonly unknown[]): Payload => {
  const type = 'application/json-patch+json';
  return { ...json('/api/articles/1', operations), method: 'PATCH', type };
};
const form = (body: string, path = '/api/multiparts/list'): Payload => {
  return { path, type: 'multipart/form-data; boundary=frontier', body };
};

const jsonEndpoints = ['/posts', '/api/todos', '/api/articles', '/auth/login', '/graphql'];
const cyclic = `{allPosts{${'author{posts{'.repeat(5)}id${'}'.repeat(12)}`;
const fragments = many(120, (at) => `fragment F${at} on Post { ...F${at + 1} ...F${at + 1} }`);
const doubling = `{ allPosts { ...F0 } } ${fragments.join(' ')} fragment F120 on Post { id }`;
const aliases = many(4_000, (at) => `a${at}: content`).join(' ');
const password = 'x'.repeat(1_000_000);
const create = 'mutation ($i: CreatePostInput!) { createPost(createPostInput: $i) }';
const unknown = Object.fromEntries(many(60_000, (at) => [`k${at}`, at]));
const frontier = '--frontier\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n';
const places = `{"0":[${many(40_000, (at) => `"variables.a${at}"`).join()}]}`;
const map = [
  '--frontier\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"{a}"}\r\n',
  `--frontier\r\nContent-Disposition: form-data; name="map"\r\n\r\n${places}\r\n--frontier--\r\n`,
].join('');

/** The status that is due, and what the response says beside it. */
const payloads: readonly (readonly [name: string, status: number, Payload, says?: RegExp])[] = [
  // GraphQL is loaded with the first request that needs it.
  ['nothing odd', 200, graphql('{ allPosts { author { name } } }'), /data/],
  ['a cycle of the schema, over 100 posts by two authors', 200, graphql(cyclic), /PAYLOAD_TOO_/],
  ['the same twenty times in a batch', 200, batch(20, cyclic), /PAYLOAD_TOO_LARGE/],
  ['a document deeper than the stack', 200, graphql('{a'.repeat(300_000))],
  ['fragments that double at each level', 200, graphql(doubling), /too often/],
  ['members that an input does not have', 413, graphql(create, { i: unknown }), /^.{0,20000}$/s],
  ['fields by the ten thousand', 200, graphql(`{ ${'x '.repeat(500_000)} }`)],
  ['aliases by the thousand', 200, graphql(`{ allPosts { ${aliases} } }`)],
  ['directives by the thousand', 200, graphql(`{ allPosts ${'@skip(if: true) '.repeat(2_000)} }`)],
  ['a document of comments', 200, graphql('{ __typename }' + '#\n'.repeat(300_000))],
  ['a batch of ten thousand', 413, batch(10_000, '{ __typename }')],
  ...jsonEndpoints.flatMap(
    (path) =>
      [
        [`a mebibyte of brackets to ${path}`, 400, { path, body: '['.repeat(1_000_000) }],
        [`a mebibyte of members to ${path}`, 400, { path, body: `{${'"a":{'.repeat(200_000)}` }],
        [`a body that is too long to ${path}`, 413, { path, body: ' '.repeat(2_000_000) }],
      ] as const,
  ),
  [
    'a patch that doubles its document',
    413,
    patch([
      { op: 'add', path: '/a', value: ['x'] },
      ...many(40, () => ({ op: 'copy', from: '/a', path: '/a/-' })),
    ]),
  ],
  [
    'a patch that fills the same place again and again',
    413,
    patch([
      { op: 'add', path: '/a', value: ['x'.repeat(50_000)] },
      ...many(900, () => ({ op: 'copy', from: '/a', path: '/b' })),
    ]),
  ],
  ['a patch of twenty thousand', 413, patch(many(20_000, () => ({ op: 'test', path: '' })))],
  ['a hundred thousand parts', 413, form(`${frontier.repeat(100_000)}--frontier--\r\n`)],
  ['an endless header of a part', 400, form(`${frontier.slice(0, -4)}X: ${'x'.repeat(50_000)}`)],
  [
    'content made of beginnings of the boundary',
    200,
    form(`${frontier.slice(0, -2)}${'\r\n--frontie'.repeat(500_000)}\r\n--frontier--\r\n`),
  ],
  ['forty thousand places in a map of files', 400, form(map, '/graphql')],
  ['a password of a mebibyte', 401, json('/auth/login', { username: 'user', password })],
  ['nothing but line ends before the first part', 400, form('\r\n'.repeat(2_000_000))],
];

test('no known payload stops the service, or keeps others waiting', async (t) => {
  const program = await runProgram(t, { measured: true });
  const { url } = await program.listening();
  await addPosts(url, 97);
  const before = await program.measure();
  const prober = startProber(t, { url, pid: program.child.pid });
  for (const [name, status, payload, says = /^.{0,2048}$/s] of payloads) {
    const { method = 'POST', path, type = 'application/json', body } = payload;
    const response = await fetch(url + path, { method, headers: { 'Content-Type': type }, body });
    const text = await response.text();
    const { heldLoop } = await program.measure();
    t.diagnostic(`${name}: ${response.status}, loop ${heldLoop.toFixed()} ms`);
    assert.equal(response.status, status, `${name}: ${text.slice(0, 300)}`);
    assert.match(text, says, name);
  }
  const gap = prober.stop();
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
    const { status } = await fetch(`${url}/posts`, { method: 'POST', headers, body });
    assert.equal(status, 201, `round ${number}`);
  }
}
