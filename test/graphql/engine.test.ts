/** The operations of Spec §4.1 by the engine alone: what is answered, and what is refused. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getIntrospectionQuery, Kind, parse, print, printSchema } from 'graphql';
import { createIdSource } from '../../dist/domain/ids.js';
import { scalarRules, UploadedFile } from '../../dist/graphql/schema/scalars.js';
import { codesOf, dataOf, startGraphql } from '../support/graphql.ts';
import { allOf } from '../support/lists.ts';

const createPost = 'mutation ($input: CreatePostInput!) { createPost(createPostInput: $input) }';
const addComment = 'mutation ($input: CommentInput!) { addComment(commentInput: $input) }';

const createId = createIdSource(() => new Date());

const schema = `
  Account: id: ID!, username: String!, email: String!, roles: [String!]!
  Author: id: ID!, name: String!, email: String!, createdAt: LocalDateTime, posts(first: Int, after: String): [Post]
  Comment: id: ID!, content: String!, createdAt: LocalDateTime, postId: String!, name: String, author: Author, status: CommentStatus!, post: Post
  CommentInput: postId: String!, content: String!, name: String
  CreatePostInput: title: String!, content: String!
  Mutation: createPost(createPostInput: CreatePostInput!): UUID!, updatePost(id: ID!, changes: UpdatePostInput!): Post!, deletePost(id: ID!): UUID!, upload(file: Upload!): Boolean, addComment(commentInput: CommentInput!): UUID!, approveComment(id: ID!): Comment!, deleteComment(id: ID!): UUID!
  Post: id: ID!, title: String!, rawTitle: String!, content: String, comments(first: Int, after: String): [Comment], status: PostStatus, createdAt: LocalDateTime, publishedAt: LocalDateTime, authorId: String, author: Author
  Query: allPosts(first: Int, after: ID, author: ID, status: PostStatus): [Post!]!, postById(postId: String!): Post, comments(first: Int, after: ID, status: CommentStatus): [Comment!]!, me: Account
  Subscription: commentAdded(postId: String, after: String): Comment!
  UpdatePostInput: title: String, content: String, status: PostStatus
`;

test('the schema holds the types and fields of the specification and no others', () => {
  const described = printSchema(startGraphql().engine.schema);
  const printed = print(parse(described.replaceAll(/"""[^]*?"""/g, '')));
  const found = printed.matchAll(/^(?:type|input) (\w+)[^{]*\{\n([^}]*)\}/gm);
  const types = Array.from(found, ([, name, block = '']) => {
    return `${name}: ${block.replaceAll(/ @\w+/g, '').trim().split(/\n\s*/).join(', ')}`;
  });
  assert.deepEqual(types.toSorted(), schema.trim().split(/\n\s*/));
  const others = [...printed.matchAll(/^(?:enum|scalar|directive) @?(\w+)/gm)];
  const names = ['CommentStatus', 'LocalDateTime', 'PostStatus', 'UUID', 'Upload', 'uppercase'];
  assert.deepEqual(others.map(([, name = '']) => name).toSorted(), names);
});

test('a created post is found by its id in either case, with its title in upper case', async () => {
  const { run } = startGraphql();
  const input = { title: 'straße ǆ', content: ' text ' };
  const { createPost: id } = dataOf(await run(createPost, { input }));
  const query =
    'query ($id: String!) { postById(postId: $id) { title content status createdAt authorId } }';
  const rest = { status: 'DRAFT', createdAt: '2026-01-05T09:00:00', authorId: null };
  const post = { title: 'STRASSE Ǆ', content: ' text ', ...rest };
  for (const given of [String(id), String(id).toUpperCase()]) {
    assert.deepEqual(dataOf(await run(query, { id: given })), { postById: post }, given);
  }
  for (const other of [createId(), 'nothing', '', '__proto__']) {
    assert.deepEqual(await run(query, { id: other }), { data: { postById: null } }, other);
  }
});

test('texts of white space only are refused, and nothing is stored', async () => {
  const { run, store, posts } = startGraphql({ posts: 1, comments: 0 });
  const postId = posts[0]?.id ?? '';
  for (const [query, input] of [
    [createPost, { title: ' ', content: 'b' }],
    [createPost, { title: 'a', content: '\u2003\n' }],
    [addComment, { postId, content: '\t' }],
  ] as const) {
    const result = await run(query, { input });
    assert.deepEqual(codesOf(result), ['BAD_USER_INPUT'], JSON.stringify(input));
  }
  assert.equal((await allOf(store.posts.all)).length, 1);
  assert.deepEqual(await allOf(store.comments.ofPost(postId)), []);
});

test('a comment on a missing post is NOT_FOUND, and not announced as others are', async () => {
  const { run, topic, posts } = startGraphql();
  const announced = topic.subscribe();
  for (const postId of [createId(), 'nothing']) {
    // The post is looked up before the content is judged, as in REST (R7, R24).
    for (const content of ['c', ' ']) {
      const result = await run(addComment, { input: { postId, content } });
      assert.deepEqual(codesOf(result), ['NOT_FOUND'], content);
      assert.equal(result.data, null, content);
      assert.deepEqual(result.errors?.[0]?.path, ['addComment'], content);
    }
  }
  const input = { postId: posts[1]?.id.toUpperCase(), content: 'new' };
  const { addComment: id } = dataOf(await run(addComment, { input }));
  const { value } = await announced.next();
  const { comment } = value ?? assert.fail();
  assert.deepEqual([comment.id, comment.content, comment.postId], [id, 'new', posts[1]?.id]);
  await announced.return?.();
});

test('a document with several operations runs the one that is named', async () => {
  const { engine, openContext, refusalOf } = startGraphql();
  const query = 'query A { allPosts { id } } query B { postById(postId: "x") { id } }';
  const named = engine.prepare({ query, operationName: 'B' }, 'r-1');
  const executed = await engine.execute(named, openContext());
  assert.equal(executed.json, '{"data":{"postById":null}}');
  for (const operationName of [undefined, 'C', '__proto__']) {
    assert.deepEqual(refusalOf({ query, operationName }), ['BAD_USER_INPUT'], operationName);
  }
});

test('the JSON of results that share a budget counts, whatever was estimated', async () => {
  const { engine, openContext } = startGraphql({ env: { REQUEST_MEMORY_BYTES_MAX: '1048576' } });
  const operation = engine.prepare({ query: getIntrospectionQuery() }, 'r-1');
  const shared = openContext();
  let bytes = 0;
  while (bytes <= 262_144 - 40_000) bytes += (await engine.execute(operation, shared)).json.length;
  await engine.execute(operation, shared).catch(() => undefined);
  await assert.rejects(engine.execute(operation, shared), { name: 'RequestError' });
});

interface Described {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly fields?: readonly Described[] | null;
  readonly inputFields?: readonly Described[] | null;
  readonly enumValues?: readonly Described[] | null;
  readonly args?: readonly Described[];
}

/** Of a part of the schema and of all within it, as `Query.allPosts.first`. */
function* describe(part: Described, place: string): Generator<[string, string]> {
  yield [place, part.description ?? ''];
  const { fields, inputFields, enumValues, args } = part;
  for (const parts of [fields, inputFields, enumValues, args]) {
    for (const inner of parts ?? []) yield* describe(inner, `${place}.${inner.name}`);
  }
}

test('each type, field, argument and value has a description of whole sentences', async () => {
  const { __schema } = dataOf(await startGraphql().run(getIntrospectionQuery()));
  const { types, directives } = __schema as Record<'types' | 'directives', readonly Described[]>;
  const own = types.filter(({ name }) => !name.startsWith('__'));
  const all = [...own, ...directives].flatMap((part) => [...describe(part, part.name)]);
  assert.ok(all.length > 60, `${all.length}`);
  const faulty = all.filter(([, description]) => !/^[A-Z][^]*\.$/.test(description));
  assert.deepEqual(faulty, []);
});

const uuid = '01a1fac9-75e7-7554-9879-966a0e24132b';

function rules(name: string): (typeof scalarRules)[string] {
  const found = scalarRules[name];
  assert.ok(found);
  return found;
}

test('LocalDateTime reads and writes one form, and refuses what is no date-time', () => {
  const { parseValue, parseLiteral, serialize } = rules('LocalDateTime');
  for (const [at, read] of [parseValue, serialize].entries()) {
    assert.equal(read('2024-05-01T10:15+02:00'), '2024-05-01T10:15:00', `read ${at}`);
    for (const bad of ['2024-02-30T10:15:00', 'now', '', 5, null, undefined, {}, new Date(0)]) {
      assert.throws(() => read(bad), /LocalDateTime needs/, JSON.stringify(bad));
    }
  }
  const seen = parseLiteral({ kind: Kind.STRING, value: '2024-05-01T10:15' });
  assert.equal(seen, '2024-05-01T10:15:00');
  assert.throws(() => parseLiteral({ kind: Kind.STRING, value: 'now' }), /LocalDateTime needs/);
  assert.throws(() => parseLiteral({ kind: Kind.INT, value: '5' }), /LocalDateTime needs/);
});

test('UUID reads either case and writes lower case', () => {
  const { parseValue, parseLiteral, serialize } = rules('UUID');
  for (const [at, read] of [parseValue, serialize].entries()) {
    assert.equal(read(uuid.toUpperCase()), uuid, `read ${at}`);
    for (const bad of ['', uuid.slice(1), `{${uuid}}`, 5, null])
      assert.throws(() => read(bad), /UUID/, JSON.stringify(bad));
  }
  assert.equal(parseLiteral({ kind: Kind.STRING, value: uuid }), uuid);
  assert.throws(() => parseLiteral({ kind: Kind.ENUM, value: uuid }), /UUID/);
});

test('Upload takes a file of a multipart request, and nothing that JSON can say', () => {
  const { parseValue, parseLiteral, serialize } = rules('Upload');
  const file = new UploadedFile({ facts: {}, storedName: 'a', store: () => undefined });
  assert.equal(parseValue(file), file);
  for (const bad of [{ facts: {}, keep: 1 }, 'file', null, []]) {
    assert.throws(() => parseValue(bad), /multipart/, JSON.stringify(bad));
  }
  assert.throws(() => parseLiteral({ kind: Kind.STRING, value: 'file' }), /variable/);
  assert.throws(() => serialize(file));
});
