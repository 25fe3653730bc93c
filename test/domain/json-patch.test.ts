import assert from 'node:assert/strict';
import test from 'node:test';
import { toJsonPatch } from '../../dist/domain/patch.js';
import { AppError } from '../../dist/errors.js';
import type { Json } from '../../dist/store/model.js';
import { copyLengthMax, patch, refusal } from '../support/json-patch.js';

type Row = readonly [title: string, document: Json, operations: readonly Json[], result: Json];

const applied: readonly Row[] = [
  ['add at the length is behind the last', [1], [{ op: 'add', path: '/1', value: 2 }], [1, 2]],
  [
    'add at - is behind the last',
    { a: [1] },
    [{ op: 'add', path: '/a/-', value: 2 }],
    { a: [1, 2] },
  ],
  ['add replaces the document', { a: 1 }, [{ op: 'add', path: '', value: 'b' }], 'b'],
  ['add keeps null', {}, [{ op: 'add', path: '/a', value: null }], { a: null }],
  ['add takes an empty name', {}, [{ op: 'add', path: '/', value: 1 }], { '': 1 }],
  ['remove of the document leaves null', { a: 1 }, [{ op: 'remove', path: '' }], null],
  ['move renames', { a: 1, b: 2 }, [{ op: 'move', from: '/a', path: '/c' }], { b: 2, c: 1 }],
  ['move within an array', [1, 2, 3], [{ op: 'move', from: '/0', path: '/2' }], [2, 3, 1]],
  ['move onto itself', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a' }], { a: { b: 1 } }],
  ['move of the document onto itself', [1], [{ op: 'move', from: '', path: '' }], [1]],
  ['move to the top', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '' }], { b: 1 }],
  ['a longer name is no child', { a: 1 }, [{ op: 'move', from: '/a', path: '/ab' }], { ab: 1 }],
  ['copy of a member', { a: [1] }, [{ op: 'copy', from: '/a', path: '/b' }], { a: [1], b: [1] }],
  ['copy into itself', { a: {} }, [{ op: 'copy', from: '/a', path: '/a/b' }], { a: { b: {} } }],
  ['copy to the top', { a: { b: 1 } }, [{ op: 'copy', from: '/a', path: '' }], { b: 1 }],
  [
    'a copy is a value of its own',
    { a: { n: 1 } },
    [
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'replace', path: '/b/n', value: 2 },
    ],
    { a: { n: 1 }, b: { n: 2 } },
  ],
  [
    'test sees no order of members',
    { a: { x: 1, y: [2] } },
    [{ op: 'test', path: '/a', value: { y: [2], x: 1 } }],
    { a: { x: 1, y: [2] } },
  ],
  [
    'test compares numbers by value',
    { a: 10 },
    [{ op: 'test', path: '/a', value: 1e1 }],
    { a: 10 },
  ],
  ['test of the document', [1], [{ op: 'test', path: '', value: [1] }], [1]],
  [
    'a member named hasOwnProperty is a member',
    { a: { hasOwnProperty: 1 } },
    [{ op: 'test', path: '/a', value: { hasOwnProperty: 1 } }],
    { a: { hasOwnProperty: 1 } },
  ],
  [
    'members named constructor and prototype are members',
    { constructor: { prototype: 1 } },
    [
      { op: 'replace', path: '/constructor/prototype', value: 2 },
      { op: 'add', path: '/prototype', value: 3 },
    ],
    { constructor: { prototype: 2 }, prototype: 3 },
  ],
  [
    'an inherited name can be added',
    {},
    [{ op: 'add', path: '/toString', value: 1 }],
    { toString: 1 },
  ],
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
  const documents: unknown[] = [
    {},
    null,
    'text',
    1,
    true,
    operation,
    [null],
    [1],
    ['add'],
    [[operation]],
    [operation, {}],
    ...['toString', 'constructor', '__proto__', '_get', 'ADD', '', 1, null].map((op) => [
      { ...operation, op },
    ]),
    ...[
      'a',
      'a/b',
      ' /a',
      '#/a',
      '/a~',
      '/~2',
      '/a~/b',
      '/~~0',
      '~0',
      null,
      1,
      ['/a'],
      '/__proto__',
      '/a/__proto__/b',
    ].map((path) => [{ ...operation, path }]),
    ...['add', 'replace', 'test'].map((op) => [{ op, path: '/a' }]),
    ...['move', 'copy'].map((op) => [{ op, path: '/a' }]),
    ...['b', 1, null, '/~'].map((from) => [{ op: 'copy', path: '/a', from }]),
    ...['/a', ''].map((from) => [{ op: 'move', path: '/a/b', from }]),
    [{ path: '/a', value: 1 }],
    [{ op: 'remove' }],
  ];
  for (const body of documents) {
    assert.equal(refusal({ a: { b: 1 } }, body), 'invalid_patch', JSON.stringify(body));
  }
});

test('the refusal of a patch document says what is wrong where', () => {
  assert.throws(() => patch({}, {}), /: the body must /);
  assert.throws(() => patch({}, [{ op: 'spam', path: '/a' }]), /: \/0\/op must /);
});

test('a patch document is judged before the first operation is applied', () => {
  assert.equal(refusal({}, [{ op: 'remove', path: '/none' }, { op: 'spam' }]), 'invalid_patch');
});

test('what has no target, or fails its test, is patch_not_applicable', () => {
  const document = { a: [1, 2], b: { c: 'd' }, n: null, t: 'text' };
  const missing = ['/x', '/A', '/b/x', '/a/2', '/t/0', '/t/length', '/n/x', '/toString'];
  const badIndices = '- -1 -0 +1 01 00 1e0 1.0 0x1 length ١ 4294967296 99999999999999999999'
    .split(' ')
    .concat('', ' 1', '1 ')
    .map((index) => `/a/${index}`);
  const operations: Json[] = [
    ...[...missing, ...badIndices].flatMap((path) => [
      { op: 'remove', path },
      { op: 'replace', path, value: 1 },
      { op: 'test', path, value: 1 },
      { op: 'copy', from: path, path: '/y' },
      { op: 'move', from: path, path: '/y' },
    ]),
    ...['/x/y', '/a/3', '/a/01', '/a/-1', '/a/x', '/a/', '/a/4294967296', '/t/0', '/n/x'].flatMap(
      (path) => [
        { op: 'add', path, value: 1 },
        { op: 'copy', from: '/t', path },
        { op: 'move', from: '/b', path },
      ],
    ),
    ...[1, [1], [2, 1], [1, 2, 3], { 0: 1, 1: 2 }, null, '1,2'].map((value) => {
      return { op: 'test', path: '/a', value };
    }),
    ...[{}, { c: 'D' }, { c: 'd', e: 1 }, { e: 'd' }, []].map((value) => {
      return { op: 'test', path: '/b', value };
    }),
    { op: 'test', path: '/n', value: false },
    { op: 'test', path: '/t', value: ['text'] },
  ];
  for (const operation of operations) {
    assert.equal(refusal(document, [operation]), 'patch_not_applicable', JSON.stringify(operation));
  }
});

test('a refusal names the operation and shows nothing of the document', () => {
  const secret = 'only the document holds this';
  try {
    patch({ secret }, [
      { op: 'test', path: '/secret', value: secret },
      { op: 'remove', path: `/${'x'.repeat(10_000)}` },
    ]);
    assert.fail('not refused');
  } catch (error) {
    assert.ok(error instanceof AppError);
    assert.deepEqual(error.facts.errors, [{ pointer: '/1', message: 'its target does not exist' }]);
    assert.ok(error.message.length < 200 && !error.message.includes(secret));
  }
});

test('one patch serves two documents and ties them in nothing', () => {
  const { apply } = toJsonPatch(
    [
      { op: 'add', path: '/list', value: [1] },
      { op: 'add', path: '/list/-', value: 2 },
    ],
    copyLengthMax,
  );
  assert.deepEqual(apply({ n: 1 }), { n: 1, list: [1, 2] });
  assert.deepEqual(apply({ n: 2 }), { n: 2, list: [1, 2] });
});
