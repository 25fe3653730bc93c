/** Lists inside objects: their pages, and what becomes of one that does not fit (R43). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Comment } from '../../dist/store/model.js';
import type { List, Page, Range, Store } from '../../dist/store/store.js';
import {
  codesOf,
  dataOf,
  type GraphqlResult,
  startGraphql,
  type TestGraphql,
  type TestGraphqlOptions,
} from '../support/graphql.ts';
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
    exceeds: (most, after) => settle(list.exceeds(most, after), (exceeds) => exceeds),
  });
  const wrap = (store: Store): Store => ({
    ...store,
    keepsObjects: !isLate,
    comments: { ...store.comments, ofPost: (id) => toCounted(store.comments.ofPost(id)) },
  });
  return { ...startGraphql({ ...options, wrap }), read };
}

async function addComments({ store }: TestGraphql, postId: string, contents: readonly string[]) {
  for (const content of contents) await store.comments.add(postId, content);
}

const postsOf = (result: GraphqlResult): readonly FoundPost[] =>
  (result.data as { allPosts: FoundPost[] }).allPosts;

test('comments of a post and posts of an author come in pages (R14a)', async (t) => {
  const { run, posts, authors } = startGraphql({ posts: 6, authors: 1, comments: 5 });
  const query = `query ($first: Int, $after: String) { allPosts(first: 1) {
    comments(first: $first, after: $after) { id }
    author { posts(first: $first, after: $after) { id } } } }`;
  const ask = async (variables: object) => {
    const [post] = postsOf(await run(query, variables)) as unknown as {
      comments: { id: string }[];
      author: { posts: { id: string }[] };
    }[];
    return [pluck(post?.comments ?? [], 'id'), pluck(post?.author.posts ?? [], 'id')] as const;
  };
  const [comments, written] = await ask({});
  assert.deepEqual(written, pluck(posts, 'id').toReversed());
  assert.deepEqual([comments.length, authors.length], [5, 1]);
  const [page, newest] = await ask({ first: 2 });
  assert.deepEqual([page, newest], [comments.slice(0, 2), written.slice(0, 2)]);
  assert.deepEqual((await ask({ first: 2, after: comments[1] }))[0], comments.slice(2, 4));
  assert.deepEqual((await ask({ first: 1_000, after: written[3] }))[1], written.slice(4));
  for (const [name, value] of Object.entries({ first: 0, after: 'x' })) {
    await t.test(name, async () => {
      const { data, errors = [] } = await run(query, { [name]: value });
      assert.deepEqual(structuredClone(data), {
        allPosts: [{ comments: null, author: { posts: null } }],
      });
      const [{ path, extensions, message } = assert.fail()] = errors;
      assert.deepEqual([path, extensions.code], [['allPosts', 0, 'comments'], 'BAD_USER_INPUT']);
      assert.match(message, new RegExp(`^The parameter ${name} must be one `));
    });
  }
});

for (const isLate of [false, true]) {
  const where = isLate ? 'read in promises' : 'in memory';

  test(`a list that does not fit is null and takes nothing from others, ${where}`, async () => {
    const options = { posts: 5, env: { GRAPHQL_OBJECTS_MAX: '2000' } };
    const graphql = startCounted(options, isLate);
    const { run, posts, read } = graphql;
    const [, popular = assert.fail()] = posts;
    await addComments(graphql, popular.id, Array<string>(4_000).fill('x'));
    const result = await run('{ allPosts { comments { id } author { id } } }');
    const lengths = postsOf(result).map(({ comments }) => comments?.length);
    assert.deepEqual(lengths, [1, 1, 1, undefined, 1]);
    assert.ok(postsOf(result).every(({ author }) => author !== null));
    const [{ path, extensions, message, locations } = assert.fail(), ...more] = result.errors ?? [];
    assert.deepEqual([path, more], [['allPosts', 3, 'comments'], []]);
    assert.equal(extensions.code, 'PAYLOAD_TOO_LARGE');
    assert.match(message, /`first`/);
    assert.deepEqual(locations, [{ line: 1, column: 14 }]);
    // A page of it, and the others.
    assert.equal(read.records, 504);
    read.records = 0;
    const one = await run(`{ postById(postId: "${popular.id}") { comments(first: 7) { id } } }`);
    dataOf(one);
    assert.equal(read.records, 7);
  });

  test(`lists leave a tenth of a result to what cannot be null, ${where}`, async () => {
    const graphql = startCounted({ posts: 40, env: { GRAPHQL_OBJECTS_MAX: '2000' } }, isLate);
    const { run, posts } = graphql;
    const popular = posts.at(-1) ?? assert.fail();
    await addComments(graphql, popular.id, Array<string>(1_599).fill('x'));
    const query = '{ allPosts { author { id } comments { id } } }';
    assert.equal(postsOf(await run(query))[0]?.comments?.length, 1_600);
    await addComments(graphql, popular.id, Array<string>(250).fill('x'));
    const result = await run(query);
    assert.deepEqual(codesOf(result), ['PAYLOAD_TOO_LARGE']);
    const lengths = postsOf(result).map(({ comments }) => comments?.length);
    assert.deepEqual(lengths, [undefined, ...Array<number>(39).fill(1)]);
  });

  test(`texts are counted as their JSON, ${where}`, async () => {
    const graphql = startCounted({ posts: 3 }, isLate);
    const { run, posts, openContext, engine, pool } = graphql;
    // Six bytes a character; each page is far below the limit.
    await addComments(graphql, posts[1]?.id ?? '', Array<string>(1_000).fill('\0'.repeat(1_000)));
    const query = '{ allPosts { comments { content } } }';
    const result = await run(query);
    assert.deepEqual(codesOf(result), ['PAYLOAD_TOO_LARGE']);
    assert.deepEqual(
      postsOf(result).map(({ comments }) => comments?.length),
      [1, undefined, 1],
    );
    // What was dropped is not counted any more.
    const before = pool.bytes;
    const context = openContext();
    await engine.execute(engine.prepare({ query }, 'r-1'), context);
    assert.ok(pool.bytes - before < 16_384, `${pool.bytes - before}`);
    context.release();
    assert.equal(pool.bytes, before);
    // A hundred of them are 600,000 bytes.
    const fits = `{ postById(postId: "${posts[1]?.id ?? ''}") { comments(first: 100) { content } } }`;
    dataOf(await run(fits));
  });

  test(`what is read for lists that do not fit is bounded, ${where}`, async () => {
    const options = { posts: 50, comments: 60, env: { GRAPHQL_OBJECTS_MAX: '100' } };
    const { run, read, logged } = startCounted(options, isLate);
    const result = await run('{ allPosts { comments { id } } }');
    assert.deepEqual(codesOf(result), ['PAYLOAD_TOO_LARGE']);
    assert.deepEqual(['data' in result, logged], [false, []]);
    // In memory they are read one after the other.
    if (!isLate) assert.ok(read.records <= 400, `${read.records}`);
  });
}

test('lists are read two hundred at a time, and none after the request was refused', async () => {
  let [reading, most, asked] = [0, 0, 0];
  const toSlow = (list: List<Comment>): List<Comment> => ({
    ...list,
    async read(range) {
      asked += 1;
      reading += 1;
      most = Math.max(most, reading);
      await new Promise(setImmediate);
      reading -= 1;
      return list.read(range);
    },
  });
  const wrap = ({ comments, ...store }: Store): Store => ({
    ...store,
    keepsObjects: false,
    comments: { ...comments, ofPost: (id) => toSlow(comments.ofPost(id)) },
  });
  const query = '{ allPosts { comments { id } } }';
  const whole = startGraphql({ posts: 500, comments: 2, wrap });
  assert.equal(postsOf(await whole.run(query)).length, 500);
  assert.deepEqual([most, asked], [200, 500]);
  asked = 0;
  const env = { GRAPHQL_OBJECTS_MAX: '500' };
  const refused = startGraphql({ posts: 460, comments: 30, wrap, env });
  assert.equal(postsOf(await refused.run(query)).length, 460);
  asked = 0;
  const many = startGraphql({ posts: 400, comments: 60, wrap, env });
  const result = await many.run(query);
  assert.deepEqual([codesOf(result), 'data' in result], [['PAYLOAD_TOO_LARGE'], false]);
  assert.ok(asked <= 260, `${asked}`);
});

test('a thousand lists can be null, one more refuses the request', async (t) => {
  for (const [posts, answered] of [
    [1_000, 20],
    [1_001, undefined],
  ] as const) {
    await t.test(`${posts}`, async () => {
      // Nine tenths are filled by the posts.
      const env = { GRAPHQL_OBJECTS_MAX: `${Math.floor(posts / 0.9)}` };
      const result = await startGraphql({ posts, env }).run('{ allPosts { comments { id } } }');
      assert.equal(result.data && result.errors?.length, answered);
    });
  }
});

test('a result with a list that is null is not kept', async () => {
  const { run, engine, openContext, posts } = startGraphql({
    posts: 2,
    comments: 90,
    env: { GRAPHQL_OBJECTS_MAX: '100' },
  });
  const query = '{ allPosts { comments { id } } }';
  assert.equal((await run(query)).errors?.length, 2);
  const context = openContext();
  const { isRepeatable } = await engine.execute(engine.prepare({ query }, 'r-1'), context);
  assert.deepEqual([isRepeatable, posts.length], [false, 2]);
});

test('a long text is not made in upper case before there is room for it (T15)', async (t) => {
  const { run, store } = startGraphql({ posts: 1 });
  for (const _ of times(30)) {
    await store.posts.create({ title: 'ΐ'.repeat(250_000), content: 'x', authorId: null });
  }
  const before = String.prototype.toUpperCase;
  let characters = 0;
  t.mock.method(String.prototype, 'toUpperCase', function made(this: string): string {
    characters += this.length;
    return before.call(this);
  });
  const result = await run('{ allPosts(first: 30) { title } }');
  assert.deepEqual([codesOf(result), characters], [['PAYLOAD_TOO_LARGE'], 0]);
  dataOf(await run('{ allPosts(first: 2) { title } }'));
  assert.equal(characters, 500_000);
});
