/** GraphQL multipart requests through real sockets (Spec §4.1 rule 4, R19, R26). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codes, type Part, postParts as send } from '../support/graphql-http.ts';
import { filesOnDisk, stored as storedFiles } from '../support/files.ts';
import { times } from '../support/lists.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { keepOthersServed } from '../support/prober.ts';
import { startServer, type TestServer } from '../support/server.ts';

keepOthersServed();

/** Stored names and contents, as the download gives them. */
async function stored(server: TestServer): Promise<readonly string[]> {
  return (await storedFiles(server)).map(([name, , , content]) => `${name}: ${content}`);
}

const upload = 'mutation ($file: Upload!) { upload(file: $file) }';
const both = 'mutation ($a: Upload!, $b: Upload!) { a: upload(file: $a) b: upload(file: $b) }';
const one = { query: upload, variables: { file: null } };
const two = { query: both, variables: { a: null, b: null } };

const file: Part = ['0', 'x', 'a.txt', 'text/plain'];
const place = (...paths: readonly string[]): Part => ['map', { '0': paths }];

test('a file by map is kept under its name, and the log has its six values', async (context) => {
  const server = await startServer(context);
  const type = 'Text/Plain; charset=ISO-8859-1';
  const given: Part = ['0', 'héllo', 'dir/notes.txt', type];
  const { status, body } = await send(server, [
    ['operations', one],
    place('variables.file'),
    given,
  ]);
  assert.deepEqual([status, body], [200, { data: { upload: true } }]);
  assert.deepEqual(await stored(server), ['notes.txt: héllo']);
  const [line = assert.fail(), ...more] = server.logged.filter(
    ({ event }) => event === 'file uploaded',
  );
  const { requestId, temporaryName, level: _, event: __, ...facts } = line;
  const ofType = { contentType: 'text/plain', charset: 'iso-8859-1' };
  assert.deepEqual([facts, more], [{ name: '0', fileName: 'notes.txt', size: 6, ...ofType }, []]);
  assert.ok(typeof temporaryName === 'string' && temporaryName !== 'notes.txt');
  assert.equal(typeof requestId, 'string');
});

test('in a variable of another type a file shows nothing of itself', async (context) => {
  const server = await startServer(context);
  const find = 'query ($v: String!) { postById(postId: $v) { id } }';
  const create = 'mutation ($v: CreatePostInput!) { createPost(createPostInput: $v) }';
  for (const [query, v, path] of [
    [find, null, 'variables.v'],
    [find, [null], 'variables.v.0'],
    [create, null, 'variables.v'],
    [create, { title: null, content: 'x' }, 'variables.v.title'],
  ] as const) {
    const operations = { query, variables: { v } };
    const { body } = await send(server, [['operations', operations], place(path), file]);
    assert.equal(codes(body)[0], 'BAD_USER_INPUT', path);
    const text = JSON.stringify(body);
    assert.doesNotMatch(text, /temporaryName|UploadedFile|a\.txt|facts|keep/, path);
  }
});

test('each operation of a batch has its file, one file several places, in any order', async (context) => {
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
  const several = await send(server, [
    ['0', 'x', 'c.txt'],
    place('variables.a', 'variables.b'),
    ['operations', two],
  ]);
  assert.deepEqual(several.body, { data: { a: true, b: true } });
  assert.deepEqual(await stored(server), ['a.txt: 1', 'b.txt: 2', 'c.txt: x']);
});

test('operations and a map are UTF-8, and limited in their values, like other JSON', async (context) => {
  const server = await startServer(context);
  const bytes = Buffer.from('{"query": "{ __typename #\u00e9\n}"}', 'latin1');
  const init = { method: 'POST', headers: { 'Content-Type': multipartType } };
  const latin = { ...init, body: multipartBody([part('operations', bytes)]) };
  assert.equal((await server.fetch('/graphql', latin)).status, 400);
  const query = '{ __typename }';
  const ofValues = (count: number) => ({ query, extensions: { list: times(count) } });
  for (const [status, ...parts] of [
    [200, ['operations', ofValues(49_000)]],
    [413, ['operations', ofValues(50_001)]],
    [413, ['operations', { query }], ['map', { '0': times(50_001) }]],
  ] as const) {
    const response = await send(server, parts);
    const expected = status === 200 ? [] : ['PAYLOAD_TOO_LARGE'];
    assert.deepEqual([response.status, codes(response.body)], [status, expected]);
  }
});

test('what is no GraphQL multipart request is refused, and nothing stays', async (context) => {
  const server = await startServer(context);
  const map = place('variables.file');
  const operations: Part = ['operations', one];
  const maps = ['[', 5, { '0': 'variables.file' }, { '0': [5] }, {}];
  const refused: readonly (readonly Part[])[] = [
    [operations, file],
    [map, file],
    [['operations', '{'], map, file],
    [operations, operations, map, file],
    ...maps.map((wrong) => [operations, ['map', wrong], file] as const),
    [operations, map],
    [operations, map, file, ['1', 'y', 'b.txt']],
    [operations, map, file, ['0', 'y', 'b.txt']],
  ];
  for (const parts of refused) {
    const { status, body } = await send(server, parts);
    assert.equal(status, 400, JSON.stringify(parts));
    assert.ok(codes(body).length > 0, JSON.stringify(parts));
  }
  // Nor what no mutation took.
  const query = 'query ($id: String) { allPosts { id } }';
  const read = { query, variables: { id: null } };
  await send(server, [['operations', read], place('variables.id'), file]);
  await send(server, [['operations', { ...one, query: `${upload} {` }], map, file]);
  assert.deepEqual(await filesOnDisk(server), []);
});

test('a map can write to members under variables only, and one file to each', async (context) => {
  const server = await startServer(context);
  const variables = { file: null, text: 'x', list: [null, 1], inner: { deep: null } };
  const operations = { query: upload, operationName: null, variables, extensions: { a: null } };
  const statusOf = async (...paths: readonly string[]): Promise<number> =>
    (await send(server, [['operations', operations], place(...paths), file])).status;
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
  assert.equal(({} as Record<string, unknown>)['x'], undefined);
});

test('more files than may be kept are refused with a code, and nothing stays', async (context) => {
  const server = await startServer(context, { constants: { storedFilesMax: 1 } });
  const { body } = await send(server, [
    ['operations', two],
    ['map', { a: ['variables.a'], b: ['variables.b'] }],
    ['a', '1', 'a.txt'],
    ['b', '2', 'b.txt'],
  ]);
  const { data, errors } = body as { data: unknown; errors: { path: string[] }[] };
  assert.deepEqual([data, errors[0]?.path], [{ a: true, b: null }, ['b']]);
  assert.deepEqual(await stored(server), ['a.txt: 1']);
  assert.equal((await filesOnDisk(server)).length, 1);
});
