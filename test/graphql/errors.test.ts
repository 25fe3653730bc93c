/** What clients are told, and what they are not (R24). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../dist/errors.js';
import type { RequestContext } from '../../dist/graphql/context.js';
import { runBatch } from '../../dist/graphql/http/batch.js';
import { refusalResponse } from '../../dist/graphql/http/messages.js';
import { toProblemResponse } from '../../dist/http/problem.js';
import type { Store } from '../../dist/store/store.js';
import { codesOf, startGraphql } from '../support/graphql.ts';

const secret = 'password of the database';

test('a document that cannot be parsed is told with its place', async () => {
  const result = await startGraphql().run('{ allPosts { id }');
  const message = 'Syntax Error: Expected Name, found <EOF>.';
  const locations = [{ line: 1, column: 18 }];
  const extensions = { code: 'GRAPHQL_PARSE_FAILED' };
  assert.deepEqual(result, { errors: [{ message, locations, extensions }] });
});

const create = 'mutation ($i: CreatePostInput!) { createPost(createPostInput: $i) }';

/** By the code of each error, documents with their variables. */
const refused: Readonly<Record<string, readonly (readonly [string, unknown?])[]>> = {
  GRAPHQL_PARSE_FAILED: [[''], [' '], ['# nothing']],
  GRAPHQL_VALIDATION_FAILED: [
    ['{ nothing }'],
    ['{ allPosts }'],
    ['{ postById { id } }'],
    ['query ($x: Unknown) { allPosts { id } }'],
    ['{ allPosts { ...Nothing } }'],
    ['mutation { createPost(createPostInput: {title: "a"}) }'],
    ['mutation { createPost(createPostInput: {title: 1, content: "b"}) }'],
  ],
  BAD_USER_INPUT: [
    [create, {}],
    ...[null, 'x', { title: 'a' }, { title: 1, content: 2 }].map((i) => [create, { i }] as const),
  ],
};

test('what is refused is not executed', async () => {
  const { run } = startGraphql();
  for (const [code, documents] of Object.entries(refused)) {
    for (const [query, variables] of documents) {
      const result = await run(query, variables);
      assert.equal('data' in result, false, query);
      assert.deepEqual(new Set(codesOf(result)), new Set([code]), query);
    }
  }
});

test('names of the schema are not suggested', async () => {
  const { run } = startGraphql();
  const odd = { i: { titl: 'a', title: 'a', content: 'b' } };
  const wrong = ['{ allPost { id } }', '{ allPosts { titel } }', '{ postById(p: 1) { id } }'];
  for (const query of [...wrong, create]) {
    for (const { message } of (await run(query, odd)).errors ?? assert.fail()) {
      assert.doesNotMatch(message, /Did you mean|allPosts|"title/, message);
    }
  }
});

test('an error has at most ten locations, whatever it lists', async () => {
  const { run } = startGraphql();
  const declared = Array<string>(12).fill('$a: Boolean!').join();
  const { errors } = await run(`query (${declared}) { __typename @include(if: $a) }`, { a: true });
  assert.equal(errors?.[0]?.locations?.length, 10);
});

test('an unexpected error is masked, and logged once with the request id', async () => {
  const find = (): Promise<never> => Promise.reject(new Error(secret));
  const wrap = (store: Store): Store => ({ ...store, authors: { find } });
  const { run, logged } = startGraphql({ posts: 30, wrap });
  const result = await run('{ allPosts { id author { name } } }');
  assert.ok(!JSON.stringify(result).includes(secret));
  assert.deepEqual(result.errors?.[0], {
    message: 'Internal server error',
    locations: [{ line: 1, column: 17 }],
    path: ['allPosts', 0, 'author'],
    extensions: { code: 'INTERNAL_SERVER_ERROR', requestId: 'r-1' },
  });
  assert.equal(result.errors?.length, 20);
  assert.equal(logged.length, 1);
  assert.equal(logged[0]?.['requestId'], 'r-1');
  assert.match(String(logged[0]?.['reason']), /password of the database/);
});

const shown = { allPosts: [{ title: 'A', createdAt: null }] };
const odd = [{ id: 'x', title: 'a', createdAt: secret } as never];
for (const [what, read, data] of [
  ['that rejects', () => Promise.reject(new Error(secret)), null],
  ['with odd records', () => ({ records: odd, next: undefined }), shown],
] as const) {
  test(`a store ${what} is masked, not shown`, async () => {
    const { run, logged } = startGraphql({
      wrap: (store) => ({ ...store, posts: { ...store.posts, all: { ...store.posts.all, read } } }),
    });
    const result = await run('{ allPosts { title createdAt } }');
    assert.deepEqual(codesOf(result), ['INTERNAL_SERVER_ERROR']);
    assert.ok(!JSON.stringify(result).includes(secret));
    assert.deepEqual(structuredClone(result.data ?? null), data);
    assert.equal(logged.length, 1);
  });
}

test('an outage is told in its place beside data, and as a refusal where there is none', async () => {
  let asked = 0;
  const wrap = (store: Store): Store => {
    const find: Store['posts']['find'] = (id) => {
      asked += 1;
      if (asked > 1) throw new AppError('unavailable', 'Away.', { retryAfterSeconds: 2 });
      return store.posts.find(id);
    };
    return { ...store, posts: { ...store.posts, find } };
  };
  const { run, logged } = startGraphql({ wrap });
  const posts = await run('{ allPosts { id } }');
  const [post] = (posts.data as { allPosts: { id: string }[] }).allPosts;
  const ask = (name: string): string => `${name}: postById(postId: "${post?.id ?? ''}") { id }`;
  const some = await run(`{ ${ask('a')} ${ask('b')} }`);
  assert.deepEqual(structuredClone(some.data), { a: { id: post?.id }, b: null });
  assert.deepEqual(some.errors?.[0]?.extensions, { code: 'UNAVAILABLE', retryAfterSeconds: 2 });
  const none = await run(`{ ${ask('a')} ${ask('b')} }`);
  assert.deepEqual(codesOf(none), ['UNAVAILABLE', 'UNAVAILABLE']);
  assert.equal('data' in none, false);
  assert.equal(logged.length, 0);
});

test('a refused request has the same headers as an error elsewhere, apart from its type', () => {
  const facts = { headers: ['Allow', 'GET'], retryAfterSeconds: 5, close: true };
  for (const code of ['draining', 'invalid_token', 'method_not_allowed'] as const) {
    const error = new AppError(code, 'No.', facts);
    const { status, headers } = refusalResponse(error, 'application/json');
    const problem = toProblemResponse(error);
    const type = ['Content-Type', 'application/json; charset=utf-8'];
    const expected = [problem.status, ...type, ...problem.headers.slice(2)];
    assert.deepEqual([status, ...headers], expected, code);
  }
});

test('a fault of the service in one operation has the id of its line in the log', async () => {
  const { engine, logged } = startGraphql();
  const prepare = (): never => {
    throw new Error('secret');
  };
  const context = { facts: { requestId: 'r-1' } } as RequestContext;
  const { json } = await runBatch({ ...engine, prepare }, [{ query: '{a}' }], context);
  const lines = logged.map(({ event, requestId }) => [event, requestId]);
  assert.deepEqual(lines, [['graphql operation failed', 'r-1']]);
  const extensions = { code: 'INTERNAL_SERVER_ERROR', requestId: 'r-1' };
  assert.deepEqual(JSON.parse(json), [
    { errors: [{ message: 'Internal server error', extensions }] },
  ]);
});
