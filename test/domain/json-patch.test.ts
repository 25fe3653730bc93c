/** JSON Patch (RFC 6902): what applies, what is refused, and what a patch may cost. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { toJsonPatch } from '../../dist/domain/patch.js';
import { AppError, type ErrorCode } from '../../dist/errors.js';
import type { Json } from '../../dist/store/model.js';
import { times } from '../support/lists.ts';
import { cases } from '../support/long.ts';

/** What the copies of one patch may hold, as by default. */
const copyLengthMax = 1_048_576;

/** The patched document. */
function patch(document: Json, operations: unknown): Json {
  return toJsonPatch(operations, copyLengthMax).apply(structuredClone(document));
}

/** The code of the refusal; also that the operations were not changed on the way. */
function refusal(document: Json, operations: unknown): ErrorCode {
  const before = JSON.stringify(operations);
  let result: Json;
  try {
    result = patch(document, operations);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    assert.equal(JSON.stringify(operations), before);
    return error.code;
  }
  return assert.fail(`not refused: ${JSON.stringify(result).slice(0, 200)}`);
}

type Row = readonly [title: string, document: Json, operations: readonly Json[], result: Json];

const add = (path: string, value: Json): Json => ({ op: 'add', path, value });
const remove = (path: string): Json => ({ op: 'remove', path });
const replace = (path: string, value: Json): Json => ({ op: 'replace', path, value });
const same = (path: string, value: Json): Json => ({ op: 'test', path, value });
const move = (from: string, path: string): Json => ({ op: 'move', from, path });
const copy = (from: string, path: string): Json => ({ op: 'copy', from, path });

const own = { a: { hasOwnProperty: 1 } };
const applied: readonly Row[] = [
  ['add at the length is behind the last', [1], [add('/1', 2)], [1, 2]],
  ['add at - is behind the last', { a: [1] }, [add('/a/-', 2)], { a: [1, 2] }],
  ['add replaces the document', { a: 1 }, [add('', 'b')], 'b'],
  ['add keeps null', {}, [add('/a', null)], { a: null }],
  ['add takes an empty name', {}, [add('/', 1)], { '': 1 }],
  ['remove of the document leaves null', { a: 1 }, [remove('')], null],
  ['move renames', { a: 1, b: 2 }, [move('/a', '/c')], { b: 2, c: 1 }],
  ['move within an array', [1, 2, 3], [move('/0', '/2')], [2, 3, 1]],
  ['move onto itself', { a: { b: 1 } }, [move('/a', '/a')], { a: { b: 1 } }],
  ['move of the document onto itself', [1], [move('', '')], [1]],
  ['move to the top', { a: { b: 1 } }, [move('/a', '')], { b: 1 }],
  ['a longer name is no child', { a: 1 }, [move('/a', '/ab')], { ab: 1 }],
  ['copy of a member', { a: [1] }, [copy('/a', '/b')], { a: [1], b: [1] }],
  ['copy into itself', { a: {} }, [copy('/a', '/a/b')], { a: { b: {} } }],
  ['copy to the top', { a: { b: 1 } }, [copy('/a', '')], { b: 1 }],
  [
    'a copy is a value of its own',
    { a: { n: 1 } },
    [copy('/a', '/b'), replace('/b/n', 2)],
    { a: { n: 1 }, b: { n: 2 } },
  ],
  [
    'test sees no order of members',
    { a: { x: 1, y: [2] } },
    [same('/a', { y: [2], x: 1 })],
    { a: { x: 1, y: [2] } },
  ],
  ['test compares numbers by value', { a: 10 }, [same('/a', 1e1)], { a: 10 }],
  ['test of the document', [1], [same('', [1])], [1]],
  ['a member named hasOwnProperty is a member', own, [same('/a', { hasOwnProperty: 1 })], own],
  [
    'members named constructor and prototype are members',
    { constructor: { prototype: 1 } },
    [replace('/constructor/prototype', 2), add('/prototype', 3)],
    { constructor: { prototype: 2 }, prototype: 3 },
  ],
  ['an inherited name can be added', {}, [add('/toString', 1)], { toString: 1 }],
  ['members that are not known are ignored', 1, [{ op: 'test', path: '', value: 1, x: 2 }], 1],
  ['no operations change nothing', { a: 1 }, [], { a: 1 }],
];

test('operations do what RFC 6902 §4 says, beyond the rows of the public suite', async (t) => {
  for (const [title, document, operations, result] of applied) {
    await t.test(title, () => {
      const before = JSON.stringify([document, operations]);
      assert.deepEqual(patch(document, operations), result);
      assert.equal(JSON.stringify([document, operations]), before);
    });
  }
});

test('what is no patch document is invalid_patch', () => {
  const operation = { op: 'add', path: '/a', value: 1 };
  const paths = 'a a/b #/a /a~ /~2 /a~/b /~~0 ~0 /__proto__ /a/__proto__/b'.split(' ');
  const operators = 'toString constructor __proto__ _get ADD'.split(' ');
  const documents: unknown[] = [
    {},
    null,
    'text',
    1,
    true,
    operation,
    ...[null, 1, 'add', [operation]].map((one) => [one]),
    [operation, {}],
    ...[...operators, '', 1, null].map((op) => [{ ...operation, op }]),
    ...[...paths, ' /a', null, 1, ['/a']].map((path) => [{ ...operation, path }]),
    ...['add', 'replace', 'test', 'move', 'copy'].map((op) => [{ op, path: '/a' }]),
    ...['b', 1, null, '/~'].map((from) => [{ op: 'copy', path: '/a', from }]),
    ...['/a', ''].map((from) => [move(from, '/a/b')]),
    [{ path: '/a', value: 1 }],
    [{ op: 'remove' }],
    // It is judged before the first operation is applied.
    [remove('/none'), { op: 'spam' }],
  ];
  for (const body of documents)
    assert.equal(refusal({ a: { b: 1 } }, body), 'invalid_patch', JSON.stringify(body));
});

test('what has no target, or fails its test, is patch_not_applicable', () => {
  const document = { a: [1, 2], b: { c: 'd' }, n: null, t: 'text' };
  const missing = ['/x', '/A', '/b/x', '/a/2', '/t/0', '/t/length', '/n/x', '/toString'];
  const badIndices = '- -1 -0 +1 01 00 1e0 1.0 0x1 length ١ 4294967296 99999999999999999999'
    .split(' ')
    .concat('', ' 1', '1 ')
    .map((index) => `/a/${index}`);
  const badTargets = '/x/y /a/3 /a/01 /a/-1 /a/x /a/ /a/4294967296 /t/0 /n/x'.split(' ');
  const operations: Json[] = [
    ...[...missing, ...badIndices].flatMap((path) => {
      return [remove(path), replace(path, 1), same(path, 1), copy(path, '/y'), move(path, '/y')];
    }),
    ...badTargets.flatMap((path) => [add(path, 1), copy('/t', path), move('/b', path)]),
    ...[1, [1], [2, 1], [1, 2, 3], { 0: 1, 1: 2 }, null, '1,2'].map((value) => same('/a', value)),
    ...[{}, { c: 'D' }, { c: 'd', e: 1 }, { e: 'd' }, []].map((value) => same('/b', value)),
    same('/n', false),
    same('/t', ['text']),
  ];
  for (const operation of operations)
    assert.equal(refusal(document, [operation]), 'patch_not_applicable', JSON.stringify(operation));
});

test('a refusal names the operation and shows nothing of the document', () => {
  const secret = 'only the document holds this';
  try {
    patch({ secret }, [same('/secret', secret), remove(`/${'x'.repeat(10_000)}`)]);
    assert.fail('not refused');
  } catch (error) {
    assert.ok(error instanceof AppError);
    assert.deepEqual(error.facts.errors, [{ pointer: '/1', message: 'its target does not exist' }]);
    assert.ok(error.message.length < 200 && !error.message.includes(secret));
  }
});

test('one patch serves two documents and ties them in nothing', () => {
  const { apply } = toJsonPatch([add('/list', [1]), add('/list/-', 2)], copyLengthMax);
  assert.deepEqual(apply({ n: 1 }), { n: 1, list: [1, 2] });
  assert.deepEqual(apply({ n: 2 }), { n: 2, list: [1, 2] });
});

test('copies that are replaced again count too', () => {
  const document = { a: 'x'.repeat(100_000) };
  const operations = times(11).map(() => copy('/a', '/b'));
  assert.equal(refusal(document, operations), 'content_too_large');
  assert.doesNotThrow(() => patch(document, operations.slice(1)));
});

test('a copy deeper than 64 levels is refused', () => {
  const nest = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  const deeper = [add(`/a${'/0'.repeat(9)}`, JSON.parse(nest(60))), copy('/a', '/b')];
  const document = JSON.parse(`{"a":${nest(9)}}`);
  assert.equal(refusal(document, deeper), 'invalid_body');
});

test('no patch changes its operations or what objects inherit', () => {
  const token = fc.constantFrom('a', 'b', '0', '1', '-', '', 'constructor', 'toString', 'length');
  const pointer = fc.array(token, { maxLength: 3 }).map((all) => all.map((t) => `/${t}`).join(''));
  const value = fc.jsonValue({ maxDepth: 2 });
  const op = fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test');
  const operations = fc.array(fc.record({ op, path: pointer, from: pointer, value }));
  const document = fc.dictionary(token, value);
  const inherited = Object.getOwnPropertyNames(Object.prototype).length;
  const property = fc.property(document, operations, (given, body) => {
    const before = JSON.stringify(body);
    try {
      JSON.stringify(patch(given as Json, body));
    } catch (error) {
      assert.ok(error instanceof AppError, String(error));
    }
    assert.equal(JSON.stringify(body), before);
    assert.equal(Object.getOwnPropertyNames(Object.prototype).length, inherited);
  });
  fc.assert(property, { numRuns: cases(2_000) });
});

interface SuiteRow {
  readonly comment?: string;
  readonly doc: Json;
  readonly patch: unknown;
  readonly expected?: Json;
  readonly error?: string;
  readonly disabled?: boolean;
}

function assertRow({ comment, doc, patch: operations, error, expected }: SuiteRow): void {
  const name = comment ?? JSON.stringify(operations);
  if (error !== undefined) {
    assert.match(refusal(doc, operations), /^(?:invalid_patch|patch_not_applicable)$/, name);
  } else {
    const result = patch(doc, operations);
    if (expected !== undefined) assert.deepEqual(result, expected, name);
  }
}

for (const [file, enabled] of Object.entries({ 'tests.json': 75, 'spec_tests.json': 16 })) {
  test(`all ${enabled} rows of the public suite's ${file} hold`, () => {
    const path = fileURLToPath(import.meta.resolve(`json-patch-test-suite/${file}`));
    const rows = (JSON.parse(readFileSync(path, 'utf8')) as SuiteRow[]).filter(
      (row) => row.disabled !== true,
    );
    assert.equal(rows.length, enabled);
    for (const row of rows) assertRow(row);
  });
}

test('a patch has at most 1,000 operations', () => {
  const operations = times(1_001).map(() => ({ op: 'test', path: '', value: 1 }));
  assert.equal(patch(1, operations.slice(1)), 1);
  assert.equal(refusal(1, operations), 'content_too_large');
});

test('a copied value counts as at least 20 characters', () => {
  // The list and its 10 values are 220.
  const operations = [{ op: 'copy', from: '/a', path: '/b' }];
  const apply = (bytes: number): Json =>
    toJsonPatch(operations, bytes).apply({ a: Array<number>(10).fill(1) });
  assert.ok(apply(220));
  assert.throws(() => apply(219), { code: 'content_too_large' });
});
