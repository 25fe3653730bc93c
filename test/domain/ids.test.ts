/** Ids: version 7, in the order in which they were made (R4). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validate, version } from 'uuid';
import { createIdSource } from '../../dist/domain/ids.js';

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
    assert.ok(validate(id), id);
    assert.equal(version(id), 7, id);
    assert.equal(id, id.toLowerCase(), id);
  }
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(ids, ids.toSorted());
});

test('new ids sort behind those of the demo data, also by a clock that is wrong', () => {
  const createId = createIdSource(() => new Date(0));
  const [first, second] = [createId(), createId()];
  assert.ok('019b8d5e-9c00-7fff-bfff-ffffffffffff' < first && first < second, first);
});

test('an id carries the time at which it was made (RFC 9562 §5.7)', () => {
  const time = Date.UTC(2026, 10, 20, 12, 0, 0, 345);
  const id = createIdSource(() => new Date(time))();
  assert.equal(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16), time);
  assert.notEqual(id, createIdSource(() => new Date(time))(), 'another source');
});
