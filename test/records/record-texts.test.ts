import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRecordTexts } from '../../dist/records/response-cache.js';

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
  // With 100 bytes beside two for each character, this one has one too many.
  const long = { title: 'x'.repeat(439) };
  toJson(long);
  toJson(long);
  assert.equal(made.length, 4);
  toJson(one);
  assert.equal(made.length, 4);
  const longest = { title: 'x'.repeat(438) };
  toJson(longest);
  toJson(longest);
  assert.equal(made.length, 5);
  // Beyond the bytes it starts anew.
  for (let count = 0; count < 10; count += 1) toJson({ count });
  toJson(one);
  assert.equal(made.length, 16);
});
