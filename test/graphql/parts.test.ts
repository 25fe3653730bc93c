/** Long lists that are executed in parts: their results are those of an execution at once. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Kind, type NameNode } from 'graphql';
import type { Engine, ReadyOperation } from '../../dist/graphql/engine.js';
import type { Store } from '../../dist/store/store.js';
import { sliceLength } from '../../dist/graphql/slices.js';
import { countStatements, startGraphql, type TestGraphql } from '../support/graphql.js';
import { cases } from '../support/long.js';

function prepare(engine: Engine, query: string, variables = {}): ReadyOperation {
  const prepared = engine.prepare({ query, variables });
  assert.ok(prepared.kind === 'ready');
  return prepared;
}

/** The same operation with one more root field, so that it is executed at once. */
function toWhole(operation: ReadyOperation): ReadyOperation {
  const name: NameNode = { kind: Kind.NAME, value: '__typename' };
  const alias: NameNode = { kind: Kind.NAME, value: 'beside' };
  const definitions = operation.document.definitions.map((definition) => {
    if (definition.kind !== Kind.OPERATION_DEFINITION) return definition;
    const { selectionSet } = definition;
    const selections = [...selectionSet.selections, { kind: Kind.FIELD, name, alias } as const];
    return { ...definition, selectionSet: { ...selectionSet, selections } };
  });
  return { ...operation, document: { ...operation.document, definitions } };
}

/** The result in parts, beside the one of an execution at once, with its cost. */
async function inBothWays({ engine, scope }: TestGraphql, operation: ReadyOperation) {
  const whole = scope();
  const { data: found, errors } = (await engine.execute(toWhole(operation), whole)).result;
  const data = found && { ...found };
  delete (data as { beside?: unknown } | null | undefined)?.beside;
  const one = scope();
  const { json, result } = await engine.execute(operation, one, true);
  const expected = JSON.stringify({ ...(errors && { errors }), data });
  assert.equal(one.budget.spent, whole.budget.spent);
  const { extensions, ...rest } = JSON.parse(json.toString()) as {
    readonly extensions: { readonly cost: { readonly objects: { readonly spent: number } } };
  };
  assert.equal(extensions.cost.objects.spent, one.budget.spent);
  assert.deepEqual(result.errors, errors);
  const plain = await engine.execute(operation, scope());
  assert.equal(plain.json.toString(), expected);
  assert.deepEqual(rest, JSON.parse(expected));
  return { json: expected, errors };
}

/** A store whose posts are changed as they are read. */
function withPosts(change: (post: object, index: number) => object) {
  return (store: Store): Store => {
    const { all } = store.posts;
    const read: typeof all.read = async (range) => {
      const page = await all.read(range);
      return { ...page, records: page.records.map((post, at) => change(post, at) as typeof post) };
    };
    return { ...store, posts: { ...store.posts, all: { ...all, read } } };
  };
}

test('in parts or at once, from values or promises, the result is the same', async () => {
  const counts: string[] = [];
  const stores = [{}, { wrap: countStatements(counts) }].map((options) =>
    startGraphql({ posts: 3 * sliceLength + 7, authors: 20, comments: 2, ...options }),
  );
  const queries = [
    '{ allPosts(first: $n) { id title } }',
    '{ all: allPosts(first: $n) { ...P author { posts { id } } } }',
    '{ allPosts(first: $n) @include(if: true) { comments { content } __typename } }',
    '{ allPosts(first: $n) @skip(if: true) { id } }',
    '{ allPosts(first: $n) { id } __typename }',
    '{ ...Q }',
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.nat(1),
      fc.constantFrom(...queries),
      fc.constantFrom(1, 49, 50, 51, 99, 100, 101, 150, 157, 200),
      async (at, query, n) => {
        const fragments =
          (query.includes('...P') ? 'fragment P on Post { content author { name } }' : '') +
          (query.includes('...Q') ? 'fragment Q on Query { a: allPosts(first: $n) { id } }' : '');
        const text = `query($n: Int) ${query} ${fragments}`;
        const store = stores[at] ?? assert.fail();
        await inBothWays(store, prepare(store.engine, text, { n }));
      },
    ),
    { numRuns: cases(160) },
  );
});

test('the errors of a part have their places in the whole list, and are as many as of the whole', async () => {
  for (const every of [60, 2]) {
    const failing = new Set<string | undefined>();
    const graphql = startGraphql({
      posts: 170,
      authors: 170,
      wrap: (store) => {
        const find: Store['authors']['find'] = (id) => {
          if (failing.has(id)) throw new Error('not readable');
          return store.authors.find(id);
        };
        return { ...store, authors: { ...store.authors, find } };
      },
    });
    graphql.authors.forEach(({ id }, index) => index % every === 0 && failing.add(id));
    const operation = prepare(graphql.engine, '{ allPosts { id author { name } } }');
    const { errors } = await inBothWays(graphql, operation);
    assert.equal(errors?.length, every === 2 ? 20 : 3);
    assert.deepEqual(errors.at(-1)?.path?.slice(0, 1), ['allPosts']);
  }
});

test('an error that makes null of the list in a later part leaves none of its records', async () => {
  const wrap = withPosts((post, index) => (index === 120 ? { ...post, status: 'NONE' } : post));
  const graphql = startGraphql({ posts: 130, wrap });
  const nulled = withPosts((post, index) => (index === 120 ? { ...post, id: null } : post));
  await inBothWays(graphql, prepare(graphql.engine, '{ allPosts { id status } }'));
  const other = startGraphql({ posts: 130, wrap: nulled });
  const { json, errors } = await inBothWays(other, prepare(other.engine, '{ allPosts { id } }'));
  assert.deepEqual(errors?.[0]?.path, ['allPosts', 120, 'id']);
  assert.equal((JSON.parse(json) as { data: unknown }).data, null);
});

test('a part beyond the budget refuses the whole, and long texts come whole', async () => {
  const content = 'é"x'.repeat(20_000);
  const wrap = withPosts((post) => ({ ...post, content }));
  const within = startGraphql({ posts: 60, wrap });
  await inBothWays(within, prepare(within.engine, '{ allPosts { content } }'));
  const beyond = startGraphql({ posts: 400, wrap });
  const operation = prepare(beyond.engine, '{ allPosts { content } }');
  const { result, json } = await beyond.engine.execute(operation, beyond.scope());
  assert.equal(result.errors?.[0]?.extensions.code, 'PAYLOAD_TOO_LARGE');
  const whole = await beyond.engine.execute(toWhole(operation), beyond.scope());
  assert.equal(json.toString(), whole.json.toString());
});

test('others have a turn between the parts', async () => {
  const { engine, scope } = startGraphql({ posts: 2 * sliceLength });
  let turns = 0;
  setImmediate(() => {
    turns += 1;
  });
  await engine.execute(prepare(engine, '{ allPosts { id } }'), scope());
  assert.equal(turns, 1);
});
