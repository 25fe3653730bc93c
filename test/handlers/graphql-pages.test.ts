/** `allPosts(first, after)` (R14a): optional arguments, which read one page of the store. */

import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import * as fc from 'fast-check';
import type { Range } from '../../dist/store/list.js';
import type { Post } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { startGraphql } from '../support/graphql.js';
import { skipPostgres } from '../support/postgres.js';
import { sharePostgres } from '../support/shared-postgres.js';
import { startServer, type TestServer } from '../support/server.js';
import { newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';

interface Body {
  readonly data: { readonly allPosts: readonly { readonly id: string }[] } | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly path: readonly string[];
    readonly extensions: { readonly code: string };
  }[];
}

const query = 'query ($first: Int, $after: ID) { allPosts(first: $first, after: $after) { id } }';

async function ask(server: TestServer, variables: object, text = query): Promise<Body> {
  const response = await server.send('POST', '/graphql', { query: text, variables });
  assert.equal(response.status, 200);
  return (await response.json()) as Body;
}

async function idsOf(server: TestServer, variables: object): Promise<readonly string[]> {
  const { data, errors } = await ask(server, variables);
  assert.equal(errors, undefined);
  return data?.allPosts.map(({ id }) => id) ?? [];
}

/** As many posts as the contents, newest first. */
async function fill(server: TestServer, contents: readonly string[]): Promise<readonly string[]> {
  for (const content of contents) await server.send('POST', '/posts', { title: 'a', content });
  const whole = (await (await server.fetch('/posts')).json()) as readonly { readonly id: string }[];
  return whole.map(({ id }) => id);
}

/** Every page of so many posts, each behind the last post of the one before. */
async function readPages(server: TestServer, first: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const page = await idsOf(server, { first, after: ids.at(-1) ?? null });
    ids.push(...page);
    // Only the last page is short.
    if (page.length < first) return ids;
  }
}

describe('pages of posts', () => {
  const stores = [
    ['in memory', false, async () => Promise.resolve('memory:')],
    ['in a SQLite file', skipSqlite, async (t) => toSqliteUrl(await newSqliteFile(t))],
    [
      'on PostgreSQL',
      skipPostgres,
      async () => {
        const postgres = await sharePostgres();
        return postgres.emptyDatabase();
      },
    ],
  ] as const satisfies readonly (readonly [
    string,
    string | false,
    (t: Parameters<typeof newSqliteFile>[0]) => Promise<string>,
  ])[];

  for (const [name, skip, newUrl] of stores) {
    it(`are the whole list in its order, also with long posts, ${name}`, { skip }, async (t) => {
      const env = { STORE_URL: await newUrl(t), DEMO_DATA: 'false' };
      const server = await startServer(t, { env });
      const long = 'x'.repeat(400_000);
      const ids = await fill(server, ['a', long, long, long, long, 'b', 'c']);
      const pick = fc.integer({ min: 1, max: 9 });
      for (const first of new Set([1, 7, 8, 1_000, ...fc.sample(pick, 3)])) {
        assert.deepEqual(await readPages(server, first), ids);
      }
      assert.deepEqual(await idsOf(server, { after: ids[2] }), ids.slice(3));
      assert.deepEqual(await idsOf(server, { after: ids[2]?.toUpperCase(), first: 2 }), [
        ids[3],
        ids[4],
      ]);
      assert.equal((await server.fetch(`/posts/${ids[2]}`, { method: 'DELETE' })).status, 204);
      assert.deepEqual(await idsOf(server, { after: ids[2], first: 2 }), [ids[3], ids[4]]);
      assert.deepEqual(await idsOf(server, { after: ids.at(-1) }), []);
    });
  }
});

test('without arguments, or with null, the response is the whole list', async (t) => {
  const server = await startServer(t);
  const whole = await ask(server, {}, '{ allPosts { id } }');
  assert.equal(whole.data?.allPosts.length, 3);
  assert.deepEqual(await ask(server, {}), whole);
  assert.deepEqual(await ask(server, { first: null, after: null }), whole);
});

test('posts are listed by their status, in pages too (R37)', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  const ids = await fill(server, ['a', 'b', 'c', 'd', 'e']);
  const published = [ids[0], ids[2], ids[3]];
  const headers = { 'content-type': 'application/merge-patch+json' };
  const body = '{"status":"PUBLISHED"}';
  for (const id of published) {
    await server.fetch(`/posts/${id}`, { method: 'PATCH', headers, body });
  }
  const text = `query ($first: Int, $after: ID, $status: PostStatus) {
    allPosts(first: $first, after: $after, status: $status) { id } }`;
  const listed = async (variables: object): Promise<readonly string[] | undefined> =>
    (await ask(server, variables, text)).data?.allPosts.map(({ id }) => id);
  assert.deepEqual(await listed({ status: 'PUBLISHED' }), published);
  assert.deepEqual(await listed({ status: 'PUBLISHED', first: 2 }), published.slice(0, 2));
  const after = published[1];
  assert.deepEqual(await listed({ status: 'PUBLISHED', first: 2, after }), published.slice(2));
  assert.deepEqual(await listed({ status: 'PENDING_MODERATION' }), []);
  assert.deepEqual(await listed({ status: null }), ids);
  const { errors } = await ask(server, { status: 'draft' }, text);
  assert.equal(errors?.[0]?.extensions.code, 'BAD_USER_INPUT');
});

test('values out of their bounds are refused by name, and read nothing', async (t) => {
  const ranges: unknown[] = [];
  const { run } = startGraphql({ wrap: (store) => noting(store, ranges) });
  const server = await startServer(t);
  for (const [variables, name] of [
    [{ first: 0 }, 'first'],
    [{ first: -1 }, 'first'],
    [{ first: 1_001 }, 'first'],
    [{ first: 2, after: 'x' }, 'after'],
    [{ after: '' }, 'after'],
    [{ after: 7 }, 'after'],
  ] as const) {
    const { data, errors } = await ask(server, variables);
    assert.equal(data, null);
    assert.deepEqual(
      errors?.map(({ path, extensions }) => [path, extensions.code]),
      [[['allPosts'], 'BAD_USER_INPUT']],
    );
    assert.match(errors?.[0]?.message ?? '', new RegExp(`^The parameter ${name} must be one `));
    await run(query, variables);
  }
  assert.deepEqual(ranges, []);
  for (const first of [1.5, '2', 2 ** 31]) {
    const { errors } = await ask(server, { first });
    assert.equal(errors?.[0]?.extensions.code, 'BAD_USER_INPUT');
  }
});

test('a page reads no more of the store than it gives', async () => {
  const ranges: unknown[] = [];
  const { run, posts } = startGraphql({
    posts: 900,
    comments: 0,
    env: { GRAPHQL_OBJECTS_MAX: '100' },
    wrap: (store) => noting(store, ranges),
  });
  const { data } = await run(query, { first: 100, after: posts.at(-1)?.id });
  const expected = posts.toReversed().slice(1, 101);
  assert.deepEqual(
    (data as { allPosts: readonly Post[] }).allPosts.map(({ id }) => id),
    expected.map(({ id }) => id),
  );
  assert.deepEqual(ranges, [{ limit: 100, after: posts.at(-1)?.id }]);
  // A list of so many posts is refused without a limit.
  for (const variables of [{}, { after: posts.at(-1)?.id }, { first: 101 }]) {
    const { errors } = await run(query, variables);
    assert.equal(errors?.[0]?.extensions.code, 'PAYLOAD_TOO_LARGE');
  }
});

test('what is read of a database is held to the memory of all requests', async (t) => {
  const start = async (url: string): Promise<TestServer> => {
    const env = { WAITING_BYTES_MAX: '8388608', DEMO_DATA: 'false', STORE_URL: url };
    const server = await startServer(t, { env });
    const post = { title: 'a', content: 'x'.repeat(400_000) };
    for (let count = 0; count < 30; count += 1) await server.send('POST', '/posts', post);
    return server;
  };
  // These records are there anyway.
  assert.equal((await idsOf(await start('memory:'), {})).length, 30);
  if (skipSqlite !== false) return;
  const server = await start(toSqliteUrl(await newSqliteFile(t)));
  for (let count = 0; count < 5; count += 1) {
    for (const variables of [{}, { first: 29 }]) {
      const { errors } = await ask(server, variables);
      assert.equal(errors?.[0]?.extensions.code, 'PAYLOAD_TOO_LARGE');
    }
    assert.equal((await idsOf(server, { first: 5 })).length, 5);
  }
});

/** The store, noting each range of all posts that is read. */
function noting(store: Store, ranges: unknown[]): Store {
  const { all } = store.posts;
  const read = (range?: Range): ReturnType<typeof all.read> => {
    ranges.push(range);
    return all.read(range);
  };
  return { ...store, posts: { ...store.posts, all: { ...all, read } } };
}
