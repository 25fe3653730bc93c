/** Every limit on documents and on what they produce, from both sides. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getIntrospectionQuery } from 'graphql';
import type { RequestError } from '../../dist/graphql/errors.js';
import { codesOf, dataOf, startGraphql, type TestGraphql } from '../support/graphql.js';
import type { List, Store } from '../../dist/store/store.js';
import { assertSoon } from '../support/pace.js';
import { allOf } from '../support/lists.js';

const invalid = ['GRAPHQL_VALIDATION_FAILED'];

function depthQuery(levels: number): string {
  return `{ ${nest(levels)} }`;
}

/** `allPosts { author { posts { author { … id` with so many levels of fields. */
function nest(levels: number): string {
  const names = Array.from({ length: levels - 1 }, (_, index) =>
    index === 0 ? 'allPosts' : index % 2 === 1 ? 'author' : 'posts',
  );
  return `${names.join(' { ')} { id ${'} '.repeat(levels - 1)}`;
}

function prepares({ refusalOf }: TestGraphql, query: string): boolean {
  return refusalOf({ query }).length === 0;
}

test('levels of fields are limited, also where fragments hide them', async () => {
  const graphql = startGraphql({ constants: { graphqlDepthMax: 6 } });
  assert.ok(prepares(graphql, depthQuery(6)));
  assert.deepEqual(codesOf(await graphql.run(depthQuery(7))), invalid);
  const hidden = (inner: string): string =>
    `{ allPosts { ... on Post { ...A } } } fragment A on Post { author { ...B } }
     fragment B on Author { posts { ${inner} } }`;
  assert.ok(prepares(graphql, hidden('author { name }')));
  assert.ok(prepares(graphql, hidden('author { posts { id } }')));
  const found = codesOf(await graphql.run(hidden('author { posts { author { id } } }')));
  assert.deepEqual(found, invalid);
});

test('aliases are limited, and the length of each: every record repeats it', async () => {
  const graphql = startGraphql();
  const query = (count: number): string => `{ allPosts { ${times(count, (at) => `a${at}: id`)} } }`;
  const long = (length: number): string => `{ allPosts { ${'a'.repeat(length)}: id } }`;
  const inFragment = `{ allPosts { ...F } } fragment F on Post { id ${'a'.repeat(129)}: title }`;
  for (const allowed of [query(50), long(128)]) assert.ok(prepares(graphql, allowed));
  for (const refused of [query(51), long(129), inFragment]) {
    assert.deepEqual(codesOf(await graphql.run(refused)), invalid);
  }
});

test('directives are limited, wherever they stand', async () => {
  const graphql = startGraphql();
  const skip = '@skip(if: false)';
  const fields = (count: number): string => times(count, () => `id ${skip}`);
  assert.ok(prepares(graphql, `{ allPosts ${skip} { ... ${skip} { ${fields(48)} } } }`));
  const more = `{ allPosts ${skip} { ...F ${skip} } } fragment F on Post { ${fields(49)} }`;
  assert.deepEqual(codesOf(await graphql.run(more)), invalid);
  const many = `{ allPosts { id ${'@skip(if: true) '.repeat(51)} } }`;
  assert.deepEqual(codesOf(await graphql.run(many)), invalid);
});

/** So many of `piece`, one after the other. */
const times = (count: number, piece: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => piece(index)).join(' ');

test('fields of one name at one place are limited, also where fragments hide them', async () => {
  // 2,000 tokens: 4,000 pairs of fields and selections on the way to them.
  const graphql = startGraphql();
  const fragments = (count: number): string =>
    times(count, (index) => `fragment F${index} on Query { allPosts { id } }`);
  const documents: readonly ((count: number) => string)[] = [
    (count) => `{ ${times(count, () => 'allPosts { id }')} }`,
    (count) => `{ ${times(count, () => '... { allPosts { id } }')} }`,
    (count) => `{ ${times(count, (index) => `...F${index}`)} } ${fragments(count)}`,
    (count) => `{ allPosts { ${times(count, () => 'author { name }')} } }`,
    (count) => `{ allPosts { id } } fragment A on Post { ${times(count, () => 'author { id }')} }`,
    (count) => `{ a: allPosts { id } ${times(count * 2, () => '__typename')} }`,
  ];
  for (const document of documents) {
    const refused = await graphql.run(document(120));
    assert.deepEqual(codesOf(refused), invalid, document(1));
    assert.match(refused.errors?.[0]?.message ?? '', /too often/, document(1));
    const few = await graphql.run(document(20));
    assert.doesNotMatch(few.errors?.[0]?.message ?? '', /too often/, document(1));
  }
});

test('arguments of fields of one name are limited by their length', async () => {
  const { run } = startGraphql();
  const document = (count: number, literal: string): string =>
    `{ ${times(count, () => `postById(postId: "${literal}") { id }`)} }`;
  dataOf(await run(document(60, 'x')));
  dataOf(await run(document(2, '\\u0001'.repeat(80_000))));
  assert.deepEqual(codesOf(await run(document(60, '\\u0001'.repeat(2_800)))), invalid);
});

test('pairs within pairs count, as do fragments that lead to fragments', async () => {
  const graphql = startGraphql();
  const nested = `{ ${times(7, () => `allPosts { ${times(7, () => `author { ${times(7, () => 'id')} }`)} }`)} }`;
  const doubled = Array.from({ length: 6 }).reduce<string>((inner, _, index) => {
    const name = index % 2 === 0 ? 'posts' : 'author';
    return `${name} { ${inner} } ${name} { ${inner} }`;
  }, 'id');
  const chain = `{ ...F0 } ${times(90, (index) => `fragment F${index} on Query { __typename ...F${index + 1} }`)}
    fragment F90 on Query { __typename }`;
  for (const document of [nested, `{ allPosts { ${doubled} } }`, chain]) {
    const [error] = (await graphql.run(document)).errors ?? [];
    assert.match(error?.message ?? '', /too often/);
  }
});

test('a fragment may be spread at many places: it is judged once', async () => {
  const graphql = startGraphql();
  const fields = 'id title content status createdAt authorId author { id name email }';
  const places = times(40, (index) => `a${index}: allPosts { ...F }`);
  dataOf(await graphql.run(`{ ${places} } fragment F on Post { ${fields} comments { id } }`));
  const levels = times(
    8,
    (index) => `fragment F${index} on Post { a: author { posts { ...F${index + 1} } }
      b: author { posts { ...F${index + 1} } } }`,
  );
  const graph = `{ allPosts { ...F0 } } ${levels} fragment F8 on Post { id }`;
  assert.ok(prepares(graphql, graph));
});

test('tokens and comments are limited', async () => {
  const graphql = startGraphql({ constants: { graphqlTokensMax: 20 } });
  assert.ok(prepares(graphql, '{ allPosts { id } }'));
  const long = `{ allPosts { ${'id '.repeat(20)} } }`;
  assert.deepEqual(codesOf(await graphql.run(long)), ['GRAPHQL_PARSE_FAILED']);
  const comments = `{ allPosts { id } } ${'#\n'.repeat(1_001)}`;
  assert.deepEqual(codesOf(await graphql.run(comments)), ['GRAPHQL_PARSE_FAILED']);
});

test('values of variables are limited, wherever they stand', async () => {
  const graphql = startGraphql();
  const query = 'mutation ($i: CreatePostInput!) { createPost(createPostInput: $i) }';
  const input = { title: 'a', content: 'b' };
  const more = (count: number): number[] => Array.from({ length: count }, () => 1);
  // The variables, `i` with its two members, and the list itself count too: 5.
  dataOf(await graphql.run(query, { i: input, more: more(995) }));
  for (const variables of [{ i: input, more: more(996) }, { i: { ...input, x: more(996) } }]) {
    assert.deepEqual(codesOf(await graphql.run(query, variables)), ['PAYLOAD_TOO_LARGE']);
  }
  const { length } = await allOf(graphql.store.posts.all);
  assert.equal(length, graphql.posts.length + 1);
});

test('a document deeper than the stack is refused, whatever the limits say', async () => {
  const big = 1_000_000_000;
  const constants = { graphqlTokensMax: big, graphqlDepthMax: big };
  const graphql = startGraphql({ constants });
  for (const deep of [
    '{a'.repeat(100_000),
    `{a(x:${'['.repeat(100_000)}`,
    `{a${'{a'.repeat(8_000)}${'}'.repeat(8_001)}`,
  ]) {
    const { errors = [] } = await graphql.run(deep);
    assert.match(errors[0]?.extensions.code ?? '', /^GRAPHQL_/);
  }
});

test('fragments that spread each other twice are judged quickly', async () => {
  let query = '{ allPosts { ...F0 } } ';
  for (let at = 0; at < 40; at += 1)
    query += `fragment F${at} on Post { ...F${at + 1} ...F${at + 1} } `;
  query += 'fragment F40 on Post { id }';
  // A new engine each time: one that has judged the document keeps it.
  await assertSoon(2_000, async () => dataOf(await startGraphql().run(query)));
});

test('fragments that spread themselves are refused', async () => {
  const { run } = startGraphql();
  const query =
    '{ allPosts { ...A } } fragment A on Post { ...B } fragment B on Post { author { posts { ...A }}}';
  assert.deepEqual(codesOf(await run(query)), invalid);
});

const cyclic = `{allPosts{${'author{posts{'.repeat(5)}id${'}'.repeat(12)}`;

test('the cycle of the schema is cut by the budget, as a whole and quickly', async () => {
  const { run, logged } = startGraphql({ posts: 100, authors: 2 });
  await assertSoon(1_000, async () => {
    const result = await run(cyclic);
    assert.equal('data' in result, false);
    assert.deepEqual(codesOf(result), ['PAYLOAD_TOO_LARGE']);
  });
  assert.deepEqual(logged, []);
});

test('the cycle is cut too where the store answers with promises', async () => {
  const later = <T>(list: List<T>): List<T> => ({ read: async (range) => list.read(range) });
  const wrap = ({ posts, authors, ...store }: Store): Store => ({
    ...store,
    authors: { find: async (id) => authors.find(id) },
    posts: { ...posts, all: later(posts.all), ofAuthor: (id) => later(posts.ofAuthor(id)) },
  });
  const { run } = startGraphql({ posts: 100, authors: 2, wrap });
  await assertSoon(2_000, async () => {
    assert.deepEqual(codesOf(await run(cyclic)), ['PAYLOAD_TOO_LARGE']);
  });
});

test('the budget counts objects: one more than it holds is refused', async () => {
  const env = { GRAPHQL_OBJECTS_MAX: '100' };
  const query = '{ allPosts { id } }';
  dataOf(await startGraphql({ posts: 100, env }).run(query));
  const refused = await startGraphql({ posts: 101, env }).run(query);
  assert.deepEqual(codesOf(refused), ['PAYLOAD_TOO_LARGE']);
});

test('a quarter of WAITING_BYTES_MAX: texts and fields count, aliases and fragments too', async () => {
  const env = { WAITING_BYTES_MAX: '4000000' };
  const { run, store, posts } = startGraphql({ env, posts: 1 });
  const content = 'x'.repeat(400_000);
  await store.posts.update(posts[0]?.id ?? '', { title: 'a', content });
  dataOf(await run('{ allPosts { content } }'));
  const aliases = '{ allPosts { a: content b: content c: content } }';
  assert.deepEqual(codesOf(await run(aliases)), ['PAYLOAD_TOO_LARGE']);
  const spread =
    '{ allPosts { ...A b: content ...C } } fragment A on Post { content } fragment C on Post { c: content }';
  assert.deepEqual(codesOf(await run(spread)), ['PAYLOAD_TOO_LARGE']);
  const fields = Array.from({ length: 50 }, (_, index) => `f${index}: id`).join(' ');
  const many = startGraphql({ env, posts: 1_000, authors: 1 });
  dataOf(await many.run('{ allPosts { id } }'));
  assert.deepEqual(codesOf(await many.run(`{ allPosts { ${fields} } }`)), ['PAYLOAD_TOO_LARGE']);
  const hidden = `{ allPosts { ...F } } fragment F on Post { ${fields} }`;
  assert.deepEqual(codesOf(await many.run(hidden)), ['PAYLOAD_TOO_LARGE']);
});

test('titles in upper case count as long as they become', async () => {
  // U+0390 becomes three characters, each of two bytes.
  const { run, store } = startGraphql({ posts: 2 });
  const create = (length: number) =>
    store.posts.create({ title: '\u0390'.repeat(length), content: 'x', authorId: null });
  for (const [length, expected] of [
    [400_000, []],
    [1_000_000, ['PAYLOAD_TOO_LARGE']],
  ] as const) {
    const { id } = await create(length);
    const result = await run('query ($id: String!) { postById(postId: $id) { title } }', { id });
    assert.deepEqual(codesOf(result), expected);
  }
});

test('introspection counts as the objects that it results in, aliases and fragments too', async () => {
  const { run } = startGraphql({ env: { GRAPHQL_OBJECTS_MAX: '1000' } });
  const few = (count: number): string => times(count, (at) => `a${at}: queryType { name }`);
  for (const query of [
    getIntrospectionQuery(),
    `{ __schema { ${few(6)} } x: __type(name: "Post") { fields { name } } }`,
    `{ ...A } ${times(40, (at) => `fragment A${at || ''} on Query { ...A${at + 1} ...A${at + 1} }`)}
     fragment A40 on Query { __schema { types { name } } }`,
  ]) {
    dataOf(await run(query));
  }
  const all = (inner: string): string => times(8, (at) => `a${at}: types { ${inner} }`);
  for (const query of [
    `{ __schema { ${all('fields { name args { name } type { name } }')} } }`,
    `{ ...A } fragment A on Query { b: __schema { ...B } }
     fragment B on __Schema { ${all('...C')} } fragment C on __Type { fields { name args { name } type { name } } }`,
  ]) {
    assert.deepEqual(codesOf(await run(query)), ['PAYLOAD_TOO_LARGE']);
  }
});

test('line ends of a document are limited before it is parsed, whatever they are', async () => {
  const { run } = startGraphql();
  for (const end of ['\n', '\r', '\u2028\n']) {
    dataOf(await run(`${end.repeat(10_000)}{ allPosts { id } }`.replaceAll('\u2028', ',')));
  }
  for (const document of [
    `${'\n'.repeat(10_001)}{ allPosts { id } }`,
    `{ allPosts { id } }${'\r'.repeat(10_001)}`,
    `{ postById(postId: """${'\n'.repeat(10_001)}""") { id } }`,
  ]) {
    const { errors = [] } = await run(document);
    assert.match(errors[0]?.message ?? '', /10001 line ends; at most 10000/);
    assert.deepEqual(codesOf({ errors }), ['GRAPHQL_PARSE_FAILED']);
  }
});

test('operations that share a budget are refused once it is spent', async () => {
  const options = { posts: 60, env: { GRAPHQL_OBJECTS_MAX: '100' } };
  const { engine, openContext } = startGraphql(options);
  const shared = openContext();
  const operation = engine.prepare({ query: '{ allPosts { id } }' });
  assert.equal((await engine.execute(operation, shared)).hasErrors, false);
  const cheap = engine.prepare({ query: '{ postById(postId: "x") { id } }' });
  for (const refused of [operation, cheap]) {
    await assert.rejects(engine.execute(refused, shared), (error: RequestError) => {
      assert.deepEqual(codesOf(error), ['PAYLOAD_TOO_LARGE']);
      return true;
    });
  }
});
