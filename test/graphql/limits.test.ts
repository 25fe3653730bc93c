/** Every limit on documents and on what they produce, from both sides. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getIntrospectionQuery } from 'graphql';
import { codesOf, dataOf, startGraphql } from '../support/graphql.ts';
import type { List, Store } from '../../dist/store/store.js';
import { assertSoon } from '../support/pace.ts';
import { allOf } from '../support/lists.ts';

const invalid = 'GRAPHQL_VALIDATION_FAILED';
const unparsed = 'GRAPHQL_PARSE_FAILED';

/** So many of `piece`, one after the other. */
const times = (count: number, piece: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => piece(index)).join(' ');

/** `allPosts { author { posts { author { … id` with so many levels of fields. */
function nest(levels: number, from = 0): string {
  const names = Array.from({ length: levels - 1 }, (_, at) =>
    from + at === 0 ? 'allPosts' : (from + at) % 2 === 1 ? 'author' : 'posts',
  );
  return `${names.join(' { ')} { id ${'} '.repeat(levels - 1)}`;
}

/** Three levels, behind two fragments. */
const behind = (inner: string): string =>
  `{ allPosts { ... on Post { ...A } } } fragment A on Post { author { ...B } }
   fragment B on Author { posts { ${inner} } }`;
const skip = '@skip(if: false)';
const skipped = (count: number): string => times(count, () => `id ${skip}`);
const aliased = (count: number): string => times(count, (at) => `a${at}: id`);
const named = (count: number, literal: string): string =>
  `{ ${times(count, () => `postById(postId: "${literal}") { id }`)} }`;
const spreads = (count: number): string =>
  `{ ${times(count, (at) => `...F${at}`)} } ` +
  times(count, (at) => `fragment F${at} on Query { allPosts { id } }`);
/** Six levels, at each of which the same stands twice. */
const doubled = Array.from({ length: 6 }).reduce<string>((inner, _, index) => {
  const name = index % 2 === 0 ? 'posts' : 'author';
  return `${name} { ${inner} } ${name} { ${inner} }`;
}, 'id');
const manyPlaces = times(40, (index) => `a${index}: allPosts { ...F }`);
const graph = times(8, (index) => {
  const next = `author { posts { ...F${index + 1} } }`;
  return `fragment F${index} on Post { a: ${next} b: ${next} }`;
});

/** Each selection counts as one, and each pair in it of the same field as another: 3,999. */
const pairs = 'id '.repeat(87) + 'title '.repeat(18);

interface Limited {
  readonly allowed?: readonly string[];
  readonly refused?: readonly string[];
  readonly code?: string;
  /** What each that is refused is told. */
  readonly says?: RegExp;
}

const documents: Readonly<Record<string, Limited>> = {
  'levels of fields, also where fragments hide them': {
    allowed: [`{ ${nest(20)} }`, behind(nest(17, 1))],
    refused: [`{ ${nest(21)} }`, behind(nest(18, 1))],
    says: /levels/,
  },
  'aliases, and the length of each: every record repeats it': {
    allowed: [`{ allPosts { ${aliased(50)} } }`, `{ allPosts { ${'a'.repeat(128)}: id } }`],
    refused: [
      `{ allPosts { ${aliased(51)} } }`,
      `{ allPosts { ${'a'.repeat(129)}: id } }`,
      `{ allPosts { ...F } } fragment F on Post { id ${'a'.repeat(129)}: title }`,
    ],
  },
  'directives, wherever they stand': {
    allowed: [`{ allPosts ${skip} { ... ${skip} { ${skipped(48)} } } }`],
    refused: [
      `{ allPosts ${skip} { ...F ${skip} } } fragment F on Post { ${skipped(49)} }`,
      `{ allPosts { id ${'@skip(if: true) '.repeat(51)} } }`,
    ],
  },
  // 2,000 tokens: 4,000 pairs of fields and selections on the way to them.
  'fields of one name at one place, also where fragments hide them': {
    allowed: [`{ allPosts { ${pairs} } }`, spreads(20)],
    refused: [
      `{ __typename allPosts { ${pairs} } }`,
      `{ ${times(120, () => 'allPosts { id }')} }`,
      `{ ${times(120, () => '... { allPosts { id } }')} }`,
      spreads(120),
      `{ allPosts { ${times(120, () => 'author { name }')} } }`,
      `{ allPosts { id } } fragment A on Post { ${times(120, () => 'author { id }')} }`,
      `{ a: allPosts { id } ${times(240, () => '__typename')} }`,
    ],
    says: /too often/,
  },
  'pairs within pairs, and fragments that lead to fragments': {
    refused: [
      `{ ${times(7, () => `allPosts { ${times(7, () => `author { ${times(7, () => 'id')} }`)} }`)} }`,
      `{ allPosts { ${doubled} } }`,
      `{ ...F0 } ${times(90, (at) => `fragment F${at} on Query { __typename ...F${at + 1} }`)}
       fragment F90 on Query { __typename }`,
    ],
    says: /too often/,
  },
  'arguments of fields of one name, by their length': {
    allowed: [named(60, 'x'), named(2, '\\u0001'.repeat(80_000)), named(20, 'x'.repeat(4_800))],
    refused: [named(60, '\\u0001'.repeat(2_800)), named(20, 'x'.repeat(4_900))],
  },
  'nothing else: a fragment may be spread at many places, and is judged once': {
    allowed: [
      `{ ${manyPlaces} } fragment F on Post { id title content author { id name } comments { id } }`,
      `{ allPosts { ...F0 } } ${graph} fragment F8 on Post { id }`,
    ],
  },
  'fragments that spread themselves': {
    refused: [
      `{ allPosts { ...A } } fragment A on Post { ...B }
       fragment B on Post { author { posts { ...A } } }`,
    ],
  },
  'tokens and comments': {
    allowed: [`{ allPosts { ${'id '.repeat(50)} } } ${'#\n'.repeat(1_000)}`],
    refused: [`{ ${'a '.repeat(2_000)} }`, `{ allPosts { id } } ${'#\n'.repeat(1_001)}`],
    code: unparsed,
  },
  // Before a document is parsed.
  'line ends, whatever they are': {
    allowed: ['\n', '\r', ',\n'].map((end) => `${end.repeat(10_000)}{ allPosts { id } }`),
    refused: [
      `${'\n'.repeat(10_001)}{ allPosts { id } }`,
      `{ allPosts { id } }${'\r'.repeat(10_001)}`,
      `{ postById(postId: """${'\n'.repeat(10_001)}""") { id } }`,
    ],
    code: unparsed,
    says: /10001 line ends; at most 10000/,
  },
};

for (const [what, limited] of Object.entries(documents)) {
  const { allowed = [], refused = [], code = invalid, says = /./ } = limited;
  test(`of a document are limited: ${what}`, async () => {
    const { run, refusalOf } = startGraphql();
    for (const query of allowed) assert.deepEqual(refusalOf({ query }), [], query);
    for (const document of refused) {
      const result = await run(document);
      assert.deepEqual(codesOf(result), [code], document.slice(0, 200));
      assert.match(result.errors?.[0]?.message ?? '', says, document);
    }
  });
}

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
  const closed = `{a${'{a'.repeat(8_000)}${'}'.repeat(8_001)}`;
  for (const deep of ['{a'.repeat(100_000), `{a(x:${'['.repeat(100_000)}`, closed]) {
    const { errors = [] } = await graphql.run(deep);
    assert.match(errors[0]?.extensions.code ?? '', /^GRAPHQL_/, deep);
  }
});

const cyclic = `{allPosts{${'author{posts{'.repeat(5)}id${'}'.repeat(12)}`;

test('the cycle of the schema is cut by the budget, list by list and quickly', async () => {
  const later = <T>(list: List<T>): List<T> => ({ ...list, read: async (at) => list.read(at) });
  const withPromises = ({ posts, authors, ...store }: Store): Store => ({
    ...store,
    authors: { find: async (id) => authors.find(id) },
    posts: { ...posts, all: later(posts.all), ofAuthor: (id) => later(posts.ofAuthor(id)) },
  });
  for (const [at, wrap] of [(store: Store): Store => store, withPromises].entries()) {
    const { run, logged } = startGraphql({ posts: 1_100, authors: 2, wrap });
    await assertSoon(2_000, async () => {
      const result = await run(cyclic);
      assert.deepEqual(new Set(codesOf(result)), new Set(['PAYLOAD_TOO_LARGE']), `wrap ${at}`);
    });
    assert.deepEqual(logged, [], `wrap ${at}`);
  }
});

test('a quarter of REQUEST_MEMORY_BYTES_MAX: texts and fields count, aliases and fragments too', async () => {
  const env = { REQUEST_MEMORY_BYTES_MAX: '4000000' };
  const few = startGraphql({ env, posts: 1 });
  const content = 'x'.repeat(400_000);
  await few.store.posts.update(few.posts[0]?.id ?? '', { title: 'a', content });
  const many = startGraphql({ env, posts: 1_000, authors: 1 });
  const fields = times(50, (index) => `f${index}: id`);
  dataOf(await few.run('{ allPosts { content } }'));
  dataOf(await many.run('{ allPosts { id } }'));
  for (const [{ run }, query] of [
    [few, '{ allPosts { a: content b: content c: content } }'],
    [few, '{ allPosts { ...A b: content c: content } } fragment A on Post { content }'],
    [many, `{ allPosts { ${fields} } }`],
    [many, `{ allPosts { ...F } } fragment F on Post { ${fields} }`],
  ] as const) {
    assert.deepEqual(codesOf(await run(query)), ['PAYLOAD_TOO_LARGE'], query);
  }
});

test('16 MiB of records of a database are read, one character more is refused', async () => {
  const wrap = (store: Store): Store => ({ ...store, keepsObjects: false });
  const { run, store, posts } = startGraphql({ posts: 1, wrap });
  const others = Object.values({ ...posts[0], title: 'a', content: '' }).join('').length;
  for (const [length, expected] of [
    [16 * 1024 * 1024, []],
    [16 * 1024 * 1024 + 1, ['PAYLOAD_TOO_LARGE']],
  ] as const) {
    const content = 'x'.repeat(length - others);
    await store.posts.update(posts[0]?.id ?? '', { title: 'a', content });
    assert.deepEqual(codesOf(await run('{ allPosts { id } }')), expected, `${length}`);
  }
});

test('titles in upper case count as long as they become', async () => {
  // U+0390 becomes three characters, each of two bytes.
  const { run, store } = startGraphql({ posts: 2 });
  for (const [length, expected] of [
    [400_000, []],
    [1_000_000, ['PAYLOAD_TOO_LARGE']],
  ] as const) {
    const title = '\u0390'.repeat(length);
    const { id } = await store.posts.create({ title, content: 'x', authorId: null });
    const result = await run('query ($id: String!) { postById(postId: $id) { title } }', { id });
    assert.deepEqual(codesOf(result), expected, `${length}`);
  }
});

test('introspection has no aliases that could multiply it, in fragments neither', async () => {
  const { run } = startGraphql();
  for (const query of [
    getIntrospectionQuery(),
    '{ a: __type(name: "Post") { fields { name } } b: __type(name: "Author") { kind } c: __typename }',
    `{ ...A } ${times(40, (at) => `fragment A${at || ''} on Query { ...A${at + 1} ...A${at + 1} }`)}
     fragment A40 on Query { __schema { types { name } } }`,
  ]) {
    dataOf(await run(query));
  }
  for (const query of [
    '{ a: __schema { description } }',
    '{ __schema { types { a: name } } }',
    '{ __type(name: "Post") { ...A } } fragment A on __Type { fields { a: args { name } } }',
  ]) {
    assert.deepEqual(codesOf(await run(query)), ['GRAPHQL_VALIDATION_FAILED'], query);
  }
});
