/** The operations of Spec §4.1 by the engine alone: what is answered, and what is refused. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printSchema } from 'graphql';
import { createIdSource } from '../../dist/domain/scalars.js';
import { AppError } from '../../dist/errors.js';
import type { Account } from '../../dist/store/model.js';
import { codesOf, dataOf, startGraphql } from '../support/graphql.js';
import { allOf } from '../support/lists.js';

const createPost = 'mutation ($input: CreatePostInput!) { createPost(createPostInput: $input) }';
const addComment = 'mutation ($input: CommentInput!) { addComment(commentInput: $input) }';

const createId = createIdSource(() => new Date());

const account: Account = {
  id: createId(),
  username: 'user',
  email: 'user@example.org',
  roles: ['USER'],
  passwordHash: '',
};

const schema = `
  Author: id: ID!, name: String!, email: String!, createdAt: LocalDateTime, posts: [Post]
  Comment: id: ID!, content: String!, createdAt: LocalDateTime, postId: String!
  CommentInput: postId: String!, content: String!
  CreatePostInput: title: String!, content: String!
  Mutation: createPost(createPostInput: CreatePostInput!): UUID!, upload(file: Upload!): Boolean, addComment(commentInput: CommentInput!): UUID!
  Post: id: ID!, title: String!, content: String, comments: [Comment], status: PostStatus, createdAt: LocalDateTime, authorId: String, author: Author
  Query: allPosts(first: Int, after: ID, status: PostStatus): [Post!]!, postById(postId: String!): Post
  Subscription: commentAdded(postId: String): Comment!
`;

test('the schema holds the types and fields of the specification and no others', () => {
  const printed = printSchema(startGraphql().engine.schema);
  const found = printed.matchAll(/^(?:type|input) (\w+)[^{]*\{\n([^}]*)\}/gm);
  const types = Array.from(found, ([, name, block = '']) => {
    const fields = block.replaceAll(/ @\w+/g, '').replaceAll(/"""[^]*?"""\n/g, '');
    return `${name}: ${fields.trim().split(/\n\s*/).join(', ')}`;
  });
  assert.deepEqual(types.toSorted(), schema.trim().split(/\n\s*/));
  const others = [...printed.matchAll(/^(?:enum|scalar|directive) @?(\w+)/gm)];
  const names = ['LocalDateTime', 'PostStatus', 'UUID', 'Upload', 'uppercase'];
  assert.deepEqual(others.map(([, name = '']) => name).toSorted(), names);
});

test('allPosts gives every post, newest first, with author and comments', async () => {
  const { run } = startGraphql({ posts: 2, authors: 1, comments: 2 });
  const query =
    '{ allPosts { id title content status createdAt author { name } comments { content } } }';
  const { allPosts } = dataOf(await run(query)) as { allPosts: Record<string, unknown>[] };
  const seen = allPosts.map(({ title }) => title);
  assert.deepEqual(seen, ['POST 2', 'POST 1']);
  const { id: _id, ...first } = structuredClone(allPosts[0] ?? {});
  assert.deepEqual(first, {
    title: 'POST 2',
    content: 'text',
    status: 'DRAFT',
    createdAt: '2026-01-05T09:00:00',
    author: { name: 'Author 1' },
    comments: [{ content: 'Comment 1' }, { content: 'Comment 2' }],
  });
});

test('postById finds a post by its id in either case, and null for other texts', async () => {
  const { run, posts } = startGraphql();
  const query = 'query ($id: String!) { postById(postId: $id) { title } }';
  const [post] = posts;
  for (const id of [post?.id, post?.id.toUpperCase()]) {
    assert.deepEqual(structuredClone(dataOf(await run(query, { id }))), {
      postById: { title: 'POST 1' },
    });
  }
  for (const id of [createId(), 'nothing', '', '__proto__']) {
    assert.deepEqual(structuredClone(await run(query, { id })), { data: { postById: null } });
  }
});

test('a created post is found by its id, with its title in upper case', async () => {
  const { run } = startGraphql({ viewer: () => undefined });
  const input = { title: 'straße ǆ', content: ' text ' };
  const { createPost: id } = dataOf(await run(createPost, { input }));
  const query = 'query ($id: String!) { postById(postId: $id) { title content status authorId } }';
  assert.deepEqual(structuredClone(dataOf(await run(query, { id }))['postById']), {
    title: 'STRASSE Ǆ',
    content: ' text ',
    status: 'DRAFT',
    authorId: null,
  });
});

test('a bad token refuses createPost, and nothing is stored', async () => {
  const viewer = (): never => {
    throw new AppError('invalid_token', 'The token is not valid.');
  };
  const { run, store } = startGraphql({ posts: 0, viewer });
  // The token is judged before the texts, as in REST.
  for (const title of ['a', ' ']) {
    const result = await run(createPost, { input: { title, content: 'b' } });
    assert.deepEqual(codesOf(result), ['UNAUTHENTICATED']);
  }
  assert.deepEqual(await allOf(store.posts.all), []);
});

test('a bad token does not matter where none is needed', async () => {
  const viewer = (): never => {
    throw new AppError('invalid_token', 'The token is not valid.');
  };
  const { run, posts } = startGraphql({ viewer });
  dataOf(await run('{ allPosts { id } }'));
  dataOf(await run(addComment, { input: { postId: posts[0]?.id, content: 'c' } }));
});

test('with REQUIRE_AUTH=writes every mutation needs a token, and no query does', async () => {
  const env = { REQUIRE_AUTH: 'writes' };
  const without = startGraphql({ env });
  const post = { input: { title: 'a', content: 'b' } };
  const blank = { input: { title: ' ', content: '' } };
  const comment = { input: { postId: without.posts[0]?.id, content: 'c' } };
  assert.deepEqual(codesOf(await without.run(createPost, post)), ['UNAUTHENTICATED']);
  assert.deepEqual(codesOf(await without.run(createPost, blank)), ['UNAUTHENTICATED']);
  assert.deepEqual(codesOf(await without.run(addComment, comment)), ['UNAUTHENTICATED']);
  dataOf(await without.run('{ allPosts { id } }'));

  const granted = startGraphql({ env, viewer: () => account });
  dataOf(await granted.run(createPost, post));
  dataOf(await granted.run(addComment, { input: { postId: granted.posts[0]?.id, content: 'c' } }));
});

test('texts of white space only are refused, and nothing is stored', async () => {
  const { run, store, posts } = startGraphql({ posts: 1, comments: 0 });
  for (const input of [
    { title: ' ', content: 'b' },
    { title: 'a', content: '\u2003\n' },
    { title: '', content: 'b' },
  ]) {
    assert.deepEqual(codesOf(await run(createPost, { input })), ['BAD_USER_INPUT']);
  }
  const input = { postId: posts[0]?.id, content: '\t' };
  assert.deepEqual(codesOf(await run(addComment, { input })), ['BAD_USER_INPUT']);
  assert.equal((await allOf(store.posts.all)).length, 1);
  assert.deepEqual(await allOf(store.comments.ofPost(posts[0]?.id ?? '')), []);
});

test('an added comment is stored and announced; its id is given back', async () => {
  const { run, topic, store, posts } = startGraphql({ comments: 0 });
  const announced = topic.subscribe();
  const input = { postId: posts[1]?.id.toUpperCase(), content: 'new' };
  const { addComment: id } = dataOf(await run(addComment, { input }));
  const { value } = await announced.next();
  assert.deepEqual(value, {
    id,
    content: 'new',
    createdAt: value?.createdAt,
    postId: posts[1]?.id,
  });
  assert.deepEqual(await allOf(store.comments.ofPost(posts[1]?.id ?? '')), [value]);
  await announced.return?.();
});

test('a comment on a missing post is NOT_FOUND, and nothing is announced', async () => {
  const { run, topic } = startGraphql();
  const announced = topic.subscribe();
  for (const postId of [createId(), 'nothing']) {
    // The post is looked up before the content is judged, as in REST (R7, R24).
    for (const content of ['c', ' ']) {
      const result = await run(addComment, { input: { postId, content } });
      assert.deepEqual(codesOf(result), ['NOT_FOUND']);
      assert.equal(result.data, null);
      assert.deepEqual(result.errors?.[0]?.path, ['addComment']);
    }
  }
  topic.publish({ id: 'x', content: 'c', createdAt: '', postId: '' });
  assert.equal((await announced.next()).value?.id, 'x');
  await announced.return?.();
});

test('a document with several operations runs the one that is named', async () => {
  const { engine, openContext, refusalOf } = startGraphql();
  const query = 'query A { allPosts { id } } query B { postById(postId: "x") { id } }';
  const named = engine.prepare({ query, operationName: 'B' });
  const executed = await engine.execute(named, openContext());
  assert.equal(executed.json, '{"data":{"postById":null}}');
  for (const operationName of [undefined, 'C', '__proto__']) {
    assert.deepEqual(refusalOf({ query, operationName }), ['BAD_USER_INPUT']);
  }
});
