import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRecordTexts } from '../../dist/records/record-texts.js';

test('the text of a record is made once, within the bytes', () => {
  const made: object[] = [];
  const texts = createRecordTexts(1_000);
  const toJson = (record: object): string =>
    texts(record, (given) => {
      made.push(given);
      return JSON.stringify(given);
    });
  const [one, other] = [{ title: 'one' }, { title: 'one' }];
  assert.equal(toJson(one), '{"title":"one"}');
  assert.equal(toJson(one), '{"title":"one"}');
  assert.deepEqual(made, [one]);
  // Equal is not the same.
  toJson(other);
  assert.equal(made.length, 2);
  const long = { title: 'x'.repeat(1_000) };
  toJson(long);
  toJson(long);
  assert.equal(made.length, 4);
  toJson(one);
  assert.equal(made.length, 4);
  // Beyond the bytes it starts anew.
  for (let count = 0; count < 10; count += 1) toJson({ count });
  toJson(one);
  assert.equal(made.length, 15);
});
