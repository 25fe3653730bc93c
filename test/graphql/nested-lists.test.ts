/** Lists inside objects: their pages, and what becomes of one that does not fit (R43). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Comment } from '../../dist/store/model.js';
import type { List, Page, Range, Store } from '../../dist/store/store.js';
import { codesOf, dataOf, type GraphqlResult, startGraphql } from '../support/graphql.ts';
import type { TestGraphql, TestGraphqlOptions } from '../support/graphql.ts';
import { pluck, times } from '../support/lists.ts';

interface FoundPost {
  readonly comments: readonly { readonly id: string }[] | null;
  readonly author: object;
}

/** Counts the records that are read of lists of comments; `isLate`: in promises. */
function startCounted(options: TestGraphqlOptions, isLate = false) {
  const read = { records: 0 };
  const count = (page: Page<Comment>): Page<Comment> => {
    read.records += page.records.length;
    const { next } = page;
    return { ...page, next: next && (() => settle(next(), count)) };
  };
  const settle = <T, U>(value: T | Promise<T>, step: (found: T) => U): U | Promise<U> =>
    isLate || value instanceof Promise ? Promise.resolve(value).then(step) : step(value);
  const toCounted = (list: List<Comment>): List<Comment> => ({
    read: (range?: Range) => settle(list.read(range), count),
  });
  const wrap = (store: Store): Store => ({
    ...store,
    keepsObjects: !isLate,
    comments: { ...store.comments, ofPost: (id) => toCounted(store.comments.ofPost(id)) },
  });
  return { ...startGraphql({ ...options, wrap }), read };
}

/** To the second post. */
async function addComments({ store, posts }: TestGraphql, count: number, content = 'x') {
  for (const _ of times(count)) await store.comments.add(posts[1]?.id ?? '', content);
}

const postsOf = (result: GraphqlResult): readonly FoundPost[] =>
  (result.data as { allPosts: FoundPost[] }).allPosts;
/** How many comments each post shows; undefined where its list is null. */
const lengthsOf = (result: GraphqlResult) =>
  postsOf(result).map(({ comments }) => comments?.length);
const query = '{ allPosts { comments { id } author { id } } }';

test('comments of a post and posts of an author come in pages (R14a)', async () => {
  const { run, posts } = startGraphql({ posts: 6, authors: 1, comments: 5 });
  const paged = `query ($first: Int, $after: String) { allPosts(first: 1) {
    comments(first: $first, after: $after) { id }
    author { posts(first: $first, after: $after) { id } } } }`;
  type Ids = readonly { readonly id: string }[];
  const ask = async (variables: object): Promise<[readonly string[], readonly string[]]> => {
    const [post = assert.fail()] = postsOf(await run(paged, variables));
    const { comments, author } = post as unknown as { comments: Ids; author: { posts: Ids } };
    return [pluck(comments, 'id'), pluck(author.posts, 'id')];
  };
  const [comments, written] = await ask({});
  assert.deepEqual(written, pluck(posts, 'id').toReversed());
  assert.equal(comments.length, 5);
  assert.deepEqual(await ask({ first: 2 }), [comments.slice(0, 2), written.slice(0, 2)]);
  assert.deepEqual((await ask({ first: 2, after: comments[1] }))[0], comments.slice(2, 4));
  assert.deepEqual((await ask({ first: 1_000, after: written[3] }))[1], written.slice(4));
  for (const [name, value] of Object.entries({ first: 0, after: 'x' })) {
    const { data, errors = [] } = await run(paged, { [name]: value });
    const none = { allPosts: [{ comments: null, author: { posts: null } }] };
    assert.deepEqual(structuredClone(data), none);
    const [{ path, extensions, message } = assert.fail()] = errors;
    assert.deepEqual([path, extensions.code], [['allPosts', 0, 'comments'], 'BAD_USER_INPUT']);
    assert.match(message, new RegExp(`^The parameter ${name} must be one `));
  }
});

for (const isLate of [false, true]) {
  const where = isLate ? 'read in promises' : 'in memory';

  test(`a list of more than 1,000 records without \`first\` is null, ${where}`, async () => {
    const graphql = startCounted({ posts: 3 }, isLate);
    const { run, posts, read } = graphql;
    const [, popular = assert.fail()] = posts;
    await addComments(graphql, 999);
    assert.deepEqual(lengthsOf(await run(query)), [1, 1_000, 1]);
    await addComments(graphql, 5_000);
    read.records = 0;
    const result = await run(query);
    assert.deepEqual(lengthsOf(result), [1, undefined, 1]);
    assert.ok(postsOf(result).every(({ author }) => author !== null));
    const [{ path, extensions, message, locations } = assert.fail(), ...more] = result.errors ?? [];
    assert.deepEqual([path, more], [['allPosts', 1, 'comments'], []]);
    assert.equal(extensions.code, 'PAYLOAD_TOO_LARGE');
    assert.match(message, /`first`/);
    assert.deepEqual(locations, [{ line: 1, column: 14 }]);
    assert.ok(read.records <= 1_502, `${read.records}`);
    read.records = 0;
    dataOf(await run(`{ postById(postId: "${popular.id}") { comments(first: 7) { id } } }`));
    assert.equal(read.records, 7);
  });

  test(`a list that does not fit is null and takes nothing from others, ${where}`, async () => {
    const env = { GRAPHQL_OBJECTS_MAX: '1000' };
    const graphql = startCounted({ posts: 5, env }, isLate);
    const { run, read } = graphql;
    await addComments(graphql, 999);
    for (const first of ['', '(first: 1000)']) {
      read.records = 0;
      const result = await run(query.replace('comments', `comments${first}`));
      assert.deepEqual(lengthsOf(result), [1, 1, 1, undefined, 1]);
      assert.deepEqual(codesOf(result), ['PAYLOAD_TOO_LARGE']);
      assert.ok(postsOf(result).every(({ author }) => author !== null));
      assert.ok(read.records <= 1_010, `${read.records}`);
    }
  });

  test(`texts are counted as their JSON, ${where}`, async () => {
    const graphql = startCounted({ posts: 3 }, isLate);
    const { run, posts, openContext, engine, pool } = graphql;
    // Six bytes a character; each page is far below the limit.
    await addComments(graphql, 999, '\0'.repeat(1_000));
    const contents = '{ allPosts { comments { content } } }';
    const result = await run(contents);
    assert.deepEqual(codesOf(result), ['PAYLOAD_TOO_LARGE']);
    assert.deepEqual(lengthsOf(result), [1, undefined, 1]);
    // A list that is null holds nothing; what was read of a database counts until the end.
    const before = pool.bytes;
    const context = openContext();
    await engine.execute(engine.prepare({ query: contents }, 'r-1'), context);
    const most = isLate ? 1_100_000 : 16_384;
    assert.ok(pool.bytes - before < most, `${pool.bytes - before}`);
    context.release();
    assert.equal(pool.bytes, before);
    // A hundred of them are 600,000 bytes.
    const fits = `{ postById(postId: "${posts[1]?.id ?? ''}") { comments(first: 100) { content } } }`;
    dataOf(await run(fits));
  });

  test(`what is read for lists that do not fit is bounded, ${where}`, async () => {
    const env = { GRAPHQL_OBJECTS_MAX: '1000' };
    const { run, read } = startCounted({ posts: 40, comments: 1_001, env }, isLate);
    const result = await run(query);
    assert.equal(result.errors?.length, 20);
    assert.ok(postsOf(result).every(({ comments }) => comments === null));
    assert.ok(postsOf(result).every(({ author }) => author !== null));
    // Two whole results, and what was asked for at the same time.
    assert.ok(read.records <= (isLate ? 30_000 : 3_000), `${read.records}`);
  });

  test(`lists are counted before they are read, empty ones too, ${where}`, async () => {
    const env = { GRAPHQL_OBJECTS_MAX: '1000' };
    const { run, read } = startCounted({ posts: 90, comments: 0, env }, isLate);
    const ids = '{ allPosts { comments { id } } }';
    assert.equal(postsOf(await run(ids)).length, 90); // 90 * (1 + 10) objects
    let asked = 0;
    const wrap = (from: Store): Store => ({
      ...from,
      comments: { ...from.comments, ofPost: (id) => ((asked += 1), from.comments.ofPost(id)) },
    });
    const bounded = startGraphql({ posts: 91, comments: 0, env, wrap });
    for (const refused of [
      ids,
      '{ allPosts { author { posts { comments { id } } } } }',
      '{ allPosts { ...A } } fragment A on Post { ...B } fragment B on Post { comments { id } }',
    ]) {
      const result = await bounded.run(refused);
      assert.deepEqual([codesOf(result), 'data' in result], [['PAYLOAD_TOO_LARGE'], false]);
    }
    assert.deepEqual([asked, read.records], [0, 0]);
  });
}

test('a result with a list that is null is not kept', async () => {
  const env = { GRAPHQL_OBJECTS_MAX: '100' };
  const { run, engine, openContext } = startGraphql({ posts: 2, comments: 90, env });
  assert.equal((await run(query)).errors?.length, 2);
  const executed = await engine.execute(engine.prepare({ query }, 'r-1'), openContext());
  assert.equal(executed.isRepeatable, false);
});
