/** Bounds of results and documents that are constants, each crossed by a literal. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FieldNode, Kind, parse } from 'graphql';
import { bytesOfDocument } from '../../dist/graphql/documents/documents.js';
import { createShapes, ResultSize } from '../../dist/graphql/result-size.js';
import { codesOf, dataOf, startGraphql } from '../support/graphql.ts';
import { times } from '../support/lists.ts';

test('a field of a result is estimated by its alias, if that is long', () => {
  const bytesOf = (alias: string): number => {
    const [definition] = parse(`{ allPosts { ${alias}: id } }`).definitions;
    assert.ok(definition?.kind === Kind.OPERATION_DEFINITION);
    const fieldNodes = [definition.selectionSet.selections[0] as FieldNode];
    return createShapes()({ fieldNodes, fragments: {} }).bytes;
  };
  assert.deepEqual([bytesOf('a'), bytesOf('a'.repeat(7)), bytesOf('a'.repeat(128))], [48, 48, 169]);
});

test('a title of 1,000 characters is measured in upper case, a longer one counts three times', () => {
  const measure = (length: number): number => {
    const size = new ResultSize();
    size.addTexts([{ title: 'x'.repeat(length) }], { bytes: 0, titles: 1, contents: 0 });
    return size.measure();
  };
  // Without the 32 bytes that its field counts already; with its quotes.
  assert.deepEqual([measure(1_000), measure(1_001)], [970, 3_009]);
});

test('a character of a text counts six bytes before it is measured', () => {
  const size = new ResultSize();
  size.addTexts([{ content: 'x'.repeat(100) }], { bytes: 0, titles: 0, contents: 1 });
  assert.deepEqual([size.bytesMax, size.measure(), size.bytesMax], [600, 70, 70]);
});

test('introspection counts 128 bytes for each object', async () => {
  const { run } = startGraphql({ env: { REQUEST_MEMORY_BYTES_MAX: '1048576' } });
  const ask = (count: number): string =>
    `{ __schema { ${times(count)
      .map((at) => `a${at}: types { fields { name } }`)
      .join(' ')} } }`;
  const { a0 } = dataOf(await run(ask(1)))['__schema'] as {
    readonly a0: readonly { readonly fields: readonly unknown[] | null }[];
  };
  const objects = a0.reduce((sum, { fields }) => sum + 1 + (fields?.length ?? 0), 0);
  // Of a quarter of the memory 2,048 objects, one of which is the schema.
  const count = Math.floor(2_047 / objects);
  assert.deepEqual(codesOf(await run(ask(count))), []);
  assert.deepEqual(codesOf(await run(ask(count + 1))), ['PAYLOAD_TOO_LARGE']);
});

test('long arguments of fields that are asked for twice count as fields', () => {
  const { refusalOf } = startGraphql();
  const ask = (length: number): string => {
    const field = `postById(postId: "${'x'.repeat(length)}") { id }`;
    return `{ ${times(20)
      .map(() => field)
      .join(' ')} }`;
  };
  assert.deepEqual(refusalOf({ query: ask(4_800) }), []);
  assert.deepEqual(refusalOf({ query: ask(4_900) }), ['GRAPHQL_VALIDATION_FAILED']);
});

test('the JSON of results that share a budget counts, whatever was estimated', async () => {
  const { engine, openContext } = startGraphql({ env: { REQUEST_MEMORY_BYTES_MAX: '1048576' } });
  const texts = times(50).map((at) => `a${at}: description`);
  const operation = engine.prepare(
    { query: `{ __schema { types { ${texts.join(' ')} } } }` },
    'r-1',
  );
  const shared = openContext();
  const { json } = await engine.execute(operation, shared);
  assert.ok(json.length > 131_072 && json.length < 262_144, `${json.length}`);
  await assert.rejects(engine.execute(operation, shared), { name: 'RequestError' });
});

test('a document counts 450 bytes for each token, 100 for a comment, and its text twice', () => {
  assert.equal(bytesOfDocument(parse('{ id }')), 1_024 + 2 * 6 + 5 * 450);
  assert.equal(bytesOfDocument(parse('{ id } #')), 1_024 + 2 * 8 + 5 * 450 + 100);
});
