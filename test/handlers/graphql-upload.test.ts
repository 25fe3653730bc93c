/** GraphQL multipart requests through real sockets (Spec §4.1 rule 4, R19, R26). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codes, type Part, postParts as send } from '../support/graphql-http.ts';
import { filesOnDisk, stored as storedFiles } from '../support/files.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { keepOthersServed } from '../support/prober.ts';

keepOthersServed();

/** Stored name → content, as the download gives it. */
async function stored(server: TestServer): Promise<Record<string, string>> {
  const files = await storedFiles(server);
  return Object.fromEntries(files.map(([name, _fileName, _type, content]) => [name, content]));
}

const upload = 'mutation ($file: Upload!) { upload(file: $file) }';
const both = 'mutation ($a: Upload!, $b: Upload!) { a: upload(file: $a) b: upload(file: $b) }';
const one = { query: upload, variables: { file: null } };

/** A map, and the file that it places. */
const oneFile = (path = 'variables.file'): readonly Part[] => [
  ['map', { '0': [path] }],
  ['0', 'x', 'a.txt', 'text/plain'],
];

test('a file by map is kept under its name, and the log has its six values', async (context) => {
  const server = await startServer(context);
  const { status, body } = await send(server, [
    ['operations', one],
    ['map', { '0': ['variables.file'] }],
    ['0', 'héllo', 'dir/notes.txt', 'Text/Plain; charset=ISO-8859-1'],
  ]);
  assert.deepEqual([status, body], [200, { data: { upload: true } }]);
  assert.deepEqual(await stored(server), { 'notes.txt': 'héllo' });
  const lines = server.logged.filter(({ event }) => event === 'file uploaded');
  assert.equal(lines.length, 1);
  const { requestId, temporaryName, ...facts } = lines[0] ?? assert.fail();
  const said = { name: '0', fileName: 'notes.txt', size: 6 };
  const type = { contentType: 'text/plain', charset: 'iso-8859-1' };
  assert.deepEqual(facts, { level: 'info', event: 'file uploaded', ...said, ...type });
  assert.ok(typeof temporaryName === 'string' && temporaryName !== 'notes.txt');
  assert.ok(typeof requestId === 'string');
});

test('operations must be UTF-8', async (context) => {
  const server = await startServer(context);
  const bytes = Buffer.from('{"query": "{ __typename #\u00e9\n}"}', 'latin1');
  const response = await server.fetch('/graphql', {
    method: 'POST',
    body: multipartBody([part('operations', bytes)]),
    headers: { 'Content-Type': multipartType },
  });
  assert.equal(response.status, 400);
});

test('in a variable of another type a file shows nothing of itself', async (context) => {
  const server = await startServer(context);
  const find = 'query ($v: String!) { postById(postId: $v) { id } }';
  const create = 'mutation ($v: CreatePostInput!) { createPost(createPostInput: $v) }';
  for (const [query, variables, path] of [
    [find, { v: null }, 'variables.v'],
    [find, { v: [null] }, 'variables.v.0'],
    [create, { v: null }, 'variables.v'],
    [create, { v: { title: null, content: 'x' } }, 'variables.v.title'],
  ] as const) {
    await context.test(JSON.stringify([query, variables]), async () => {
      const { body } = await send(server, [['operations', { query, variables }], ...oneFile(path)]);
      const text = JSON.stringify(body);
      assert.match(text, /BAD_USER_INPUT/, path);
      assert.doesNotMatch(text, /temporaryName|UploadedFile|a\.txt|facts|keep/, path);
    });
  }
});

test('a batch takes a file for each of its operations', async (context) => {
  const server = await startServer(context);
  const { body } = await send(server, [
    ['operations', [one, { query: '{' }, one]],
    ['map', { a: ['0.variables.file'], b: ['2.variables.file'] }],
    ['a', '1', 'a.txt'],
    ['b', '2', 'b.txt'],
  ]);
  const [first, second, third] = body as Record<string, unknown>[];
  assert.deepEqual([first, third], [{ data: { upload: true } }, { data: { upload: true } }]);
  assert.ok(second?.['errors']);
  assert.deepEqual(await stored(server), { 'a.txt': '1', 'b.txt': '2' });
});

test('one file can stand at several places, and parts come in any order', async (context) => {
  const server = await startServer(context);
  const { body } = await send(server, [
    ['0', 'x', 'a.txt'],
    ['map', { '0': ['variables.a', 'variables.b'] }],
    ['operations', { query: both, variables: { a: null, b: null } }],
  ]);
  assert.deepEqual(body, { data: { a: true, b: true } });
  assert.deepEqual(await stored(server), { 'a.txt': 'x' });
});

test('operations and a map are limited in their values, like other JSON', async (context) => {
  const server = await startServer(context);
  const list = (length: number): number[] => Array.from({ length }, () => 0);
  const query = '{ __typename }';
  const ofValues = (count: number) => ({ query, extensions: { list: list(count) } });
  assert.equal((await send(server, [['operations', ofValues(49_000)]])).status, 200);
  const longMap: Part = ['map', { '0': list(50_001) }];
  for (const parts of [
    [['operations', ofValues(50_001)]],
    [['operations', { query }], longMap],
  ] as const) {
    const { status, body } = await send(server, parts);
    assert.deepEqual([status, codes(body)], [413, ['PAYLOAD_TOO_LARGE']], JSON.stringify(parts));
  }
});

test('what is no GraphQL multipart request is refused, and nothing stays', async (context) => {
  const server = await startServer(context);
  const file: Part = ['0', 'x', 'a.txt'];
  const map: Part = ['map', { '0': ['variables.file'] }];
  const operations: Part = ['operations', one];
  const refused: readonly (readonly Part[])[] = [
    [operations, file],
    [map, file],
    [['operations', '{'], map, file],
    [operations, operations, map, file],
    [operations, ['map', '['], file],
    [operations, ['map', 5], file],
    [operations, ['map', { '0': 'variables.file' }], file],
    [operations, ['map', { '0': [5] }], file],
    [operations, map],
    [operations, ['map', {}], file],
    [operations, map, file, ['1', 'y', 'b.txt']],
    [operations, map, file, ['0', 'y', 'b.txt']],
  ];
  for (const parts of refused) {
    const { status, body } = await send(server, parts);
    assert.equal(status, 400, JSON.stringify(parts));
    assert.ok((body as { errors: unknown[] }).errors.length > 0, JSON.stringify(parts));
  }
  assert.deepEqual(await stored(server), {});
  assert.deepEqual(await filesOnDisk(server), []);
});

test('a map can write to members under variables only, and one file to each', async (context) => {
  const server = await startServer(context);
  const variables = { file: null, text: 'x', list: [null, 1], inner: { deep: null } };
  const operations = { query: upload, operationName: null, variables, extensions: { a: null } };
  const statusOf = async (...paths: readonly string[]): Promise<number> => {
    const map: Part = ['map', { '0': paths }];
    return (await send(server, [['operations', operations], map, ['0', 'x', 'a']])).status;
  };
  const ofVariables =
    'none list.2 list.length list.-1 text.x __proto__.x constructor.prototype.x ' +
    'inner.toString list.00';
  const others = 'operationName query extensions.a variables 0.variables.file __proto__.x';
  const wrong = ofVariables.split(' ').map((name) => `variables.${name}`);
  for (const path of ['', ...others.split(' '), ...wrong]) {
    assert.equal(await statusOf(path), 400, path);
  }
  assert.equal(await statusOf('variables.file', 'variables.file'), 400);
  assert.equal(await statusOf('variables.file', 'variables.list.0', 'variables.inner.deep'), 200);
  assert.deepEqual(Object.keys({}), []);
  assert.equal(({} as Record<string, unknown>)['x'], undefined);
});

test('a file that no mutation took is gone when the request is over', async (context) => {
  const server = await startServer(context);
  const operations = { query: 'query ($id: String) { allPosts { id } }', variables: { id: null } };
  await send(server, [['operations', operations], ...oneFile('variables.id')]);
  const invalid = { query: `${upload} {`, variables: { file: null } };
  await send(server, [['operations', invalid], ...oneFile()]);
  assert.deepEqual(await stored(server), {});
  assert.deepEqual(await filesOnDisk(server), []);
});

test('more files than may be kept are refused with a code, and nothing stays', async (context) => {
  const server = await startServer(context, { constants: { storedFilesMax: 1 } });
  const { body } = await send(server, [
    ['operations', { query: both, variables: { a: null, b: null } }],
    ['map', { a: ['variables.a'], b: ['variables.b'] }],
    ['a', '1', 'a.txt'],
    ['b', '2', 'b.txt'],
  ]);
  const { data, errors } = body as { data: unknown; errors: { path: string[] }[] };
  assert.deepEqual(data, { a: true, b: null });
  assert.deepEqual(errors[0]?.path, ['b']);
  assert.deepEqual(await stored(server), { 'a.txt': '1' });
  assert.equal((await filesOnDisk(server)).length, 1);
});
