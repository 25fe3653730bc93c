import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { toMergePatch } from '../../dist/domain/patch.js';
import type { Json } from '../../dist/store/model.js';
import { cases } from '../support/long.ts';

/** The patched document; also that the patch was not changed on the way. */
function merge(target: Json, patch: Json): Json {
  const before = JSON.stringify(patch);
  const result = toMergePatch(patch).apply(structuredClone(target));
  assert.equal(JSON.stringify(patch), before);
  return result;
}

type Row = readonly [target: Json, patch: Json, result: Json];

/** RFC 7386 appendix A. */
const appendixA: readonly Row[] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

test('the 15 rows of RFC 7386 appendix A hold', () => {
  assert.equal(appendixA.length, 15);
  for (const [target, patch, result] of appendixA)
    assert.deepEqual(merge(target, patch), result, JSON.stringify([target, patch]));
});

test('a member named __proto__ stays a member and touches no prototype', () => {
  const patch = JSON.parse('{"__proto__": {"polluted": true}, "a": {"__proto__": 1}, "b": 2}');
  const result = merge({ a: {} }, patch);
  assert.equal(JSON.stringify(result), '{"a":{"__proto__":1},"__proto__":{"polluted":true},"b":2}');
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.ok(!('polluted' in {}));
});

test('members keep their order, new ones come last', () => {
  const result = merge({ z: 1, m: { y: 1, x: 1 }, a: 1 }, { new: 1, a: 2, m: { w: 1, y: 2 } });
  assert.equal(JSON.stringify(result), '{"z":1,"m":{"y":2,"x":1,"w":1},"a":2,"new":1}');
});

test('merging agrees with the function that RFC 7386 §2 spells out', () => {
  const isObject = (value: Json): value is Record<string, Json> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const oracle = (target: Json | undefined, patch: Json): Json => {
    if (!isObject(patch)) return patch;
    const members = new Map(target !== undefined && isObject(target) ? Object.entries(target) : []);
    for (const [name, value] of Object.entries(patch)) {
      if (value === null) members.delete(name);
      else members.set(name, oracle(members.get(name), value));
    }
    return Object.fromEntries(members);
  };
  const names =
    'a b 1 ~ ~a \\ " \n~ constructor prototype hasOwnProperty toJSON toString valueOf'.split(' ');
  const name = fc.constantFrom('', ...names);
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<Json>(null, 1, 'text', true),
      fc.dictionary(name, tie('value')) as fc.Arbitrary<Json>,
      fc.array(tie('value'), { maxLength: 2 }),
    ),
  }));
  fc.assert(
    fc.property(value, value, (target, patch) => {
      const plain: [Json, Json] = structuredClone([target, patch]);
      assert.deepEqual(merge(...plain), oracle(...plain));
    }),
    { numRuns: cases(2_000) },
  );
});
