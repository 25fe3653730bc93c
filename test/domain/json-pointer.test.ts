import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { findValue, isBelow, parsePointer } from '../../dist/domain/json-pointer.js';
import type { Json } from '../../dist/store/model.js';
import { anyCharacter } from '../support/texts.js';

/** RFC 6901 §5. */
const document: Json = {
  foo: ['bar', 'baz'],
  '': 0,
  'a/b': 1,
  'c%d': 2,
  'e^f': 3,
  'g|h': 4,
  'i\\j': 5,
  'k"l': 6,
  ' ': 7,
  'm~n': 8,
};

function find(value: Json, text: string): Json | undefined {
  const pointer = parsePointer(text);
  assert.ok(pointer, `${text} is a pointer`);
  return findValue(value, pointer.tokens);
}

test('the pointers of RFC 6901 §5 lead to their values', () => {
  assert.equal(find(document, ''), document);
  assert.deepEqual(find(document, '/foo'), ['bar', 'baz']);
  const places = ['/foo/0', '/', '/a~1b', '/c%d', '/e^f', '/g|h', '/i\\j', '/k"l', '/ ', '/m~0n'];
  assert.deepEqual(
    places.map((place) => find(document, place)),
    ['bar', 0, 1, 2, 3, 4, 5, 6, 7, 8],
  );
});

test('text that is no pointer is refused', () => {
  for (const text of ['foo', ' /foo', '#/foo', '/foo~', '/~2', '/a~/b', '/~~0', '~0']) {
    assert.equal(parsePointer(text), undefined, text);
  }
});

test('an escaped tilde is not read twice', () => {
  assert.equal(find({ '~1': 'tilde one', '/': 'slash' }, '/~01'), 'tilde one');
});

test('array indices are digits without a leading zero, within the array', () => {
  const list = { list: ['first', 'second'] };
  assert.equal(find(list, '/list/1'), 'second');
  const wrong = ['2', '-', '-1', '-0', '+1', '01', '00', '1e0', '1.0', '0x1', ' 1', '1 ', '', '١'];
  for (const token of [...wrong, '4294967296', '99999999999999999999', 'length']) {
    assert.equal(find(list, `/list/${token}`), undefined, token);
  }
});

test('only own members are found', () => {
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.equal(find({}, `/${name}`), undefined, name);
    assert.equal(find({ [name]: 1, other: 2 }, `/${name}`), 1, name);
  }
  assert.equal(find('text', '/length'), undefined);
  assert.equal(find(null, '/a'), undefined);
});

test('one pointer is below another only at a token boundary', () => {
  const below = (inner: string, outer: string): boolean => {
    const [a, b] = [parsePointer(inner), parsePointer(outer)];
    return a !== undefined && b !== undefined && isBelow(a, b);
  };
  assert.ok(below('/a/b', '/a'));
  assert.ok(below('/a', ''));
  assert.ok(!below('/ab', '/a'));
  assert.ok(!below('/a', '/a'));
  assert.ok(!below('/a', '/a/b'));
});

test('any names can be written as a pointer and read back', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: anyCharacter })), (names) => {
      const escaped = names.map((name) => name.replaceAll('~', '~0').replaceAll('/', '~1'));
      const text = escaped.map((token) => `/${token}`).join('');
      assert.deepEqual(parsePointer(text)?.tokens, names);
    }),
  );
});
