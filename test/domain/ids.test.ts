import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validate, version } from 'uuid';
import { createIdSource, toArticleId, toId } from '../../dist/domain/ids.js';

test('new ids are version 7, in lower case, distinct, and sort in the order made', () => {
  let time = 1_800_000_000_000;
  const createId = createIdSource(() => new Date(time));
  const ids = Array.from({ length: 2_000 }, (_, index) => {
    // Some in one millisecond, some later, some with a clock that was set back.
    if (index % 7 === 0) time += 1;
    if (index === 1_000) time -= 5_000;
    return createId();
  });
  for (const id of ids) {
    assert.ok(validate(id));
    assert.equal(version(id), 7);
    assert.equal(id, id.toLowerCase());
  }
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(ids, ids.toSorted());
});

test('an id carries the time at which it was made (RFC 9562 §5.7)', () => {
  const time = Date.UTC(2026, 10, 20, 12, 0, 0, 345);
  const id = createIdSource(() => new Date(time))();
  assert.equal(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16), time);
});

test('two sources make different ids in the same millisecond', () => {
  const now = (): Date => new Date(1_800_000_000_000);
  assert.notEqual(createIdSource(now)(), createIdSource(now)());
});

test('an id is read in either case, whatever its version', () => {
  const id = '019b8d5e-9c00-7000-8000-0000000000ab';
  assert.equal(toId(id), id);
  assert.equal(toId(id.toUpperCase()), id);
  assert.equal(
    toId('00000000-0000-0000-0000-000000000001'),
    '00000000-0000-0000-0000-000000000001',
  );
});

test('text that is no id names nothing', () => {
  const id = '019b8d5e-9c00-7000-8000-0000000000ab';
  for (const text of ['', 'x', id.slice(1), `${id}0`, id.replace('-', ''), ` ${id.slice(1)}`]) {
    assert.equal(toId(text), undefined, text);
  }
  assert.equal(toId(id.replace('a', 'g')), undefined);
});

test('an article id has digits only, no sign, no leading zero, and is a safe integer', () => {
  assert.equal(toArticleId('1'), 1);
  assert.equal(toArticleId('9007199254740991'), 9_007_199_254_740_991);
  for (const text of ['', '0', '01', '+1', '-1', '1.0', '1e3', ' 1', '9007199254740992', '٣']) {
    assert.equal(toArticleId(text), undefined, text);
  }
});
