import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnswerCache } from '../../dist/http/answer-cache.js';

test('an answer is made once for each revision', () => {
  let revision = 1;
  let made = 0;
  const answers = createAnswerCache({ bytesMax: 100, revision: () => revision });
  const get = (key: string): unknown => answers.get(key, () => Buffer.from(`${key}${(made += 1)}`));
  const [first, again, other] = [get('a'), get('a'), get('b')];
  assert.deepEqual([first, other], [Buffer.from('a1'), Buffer.from('b2')]);
  assert.equal(again, first);
  revision = 2;
  assert.deepEqual(get('a'), Buffer.from('a3'));
  assert.deepEqual(get('a'), Buffer.from('a3'));
});

test('an answer during whose making something was written is given, not kept', async () => {
  let revision = 1;
  let made = 0;
  const answers = createAnswerCache({ bytesMax: 100, revision: () => revision });
  const make = async (): Promise<Buffer> => {
    made += 1;
    await Promise.resolve();
    revision += 1;
    return Buffer.from(`${made}`);
  };
  assert.equal(String(await answers.get('a', make)), '1');
  assert.equal(String(await answers.get('a', make)), '2');
});

test('nothing is kept beyond its bytes, without a revision, or of an absent answer', () => {
  let made = 0;
  const count = (size: number) => (): Buffer => {
    made += 1;
    return Buffer.alloc(size);
  };
  const small = createAnswerCache({ bytesMax: 10, revision: () => 1 });
  for (let round = 0; round < 2; round += 1) small.get('a', count(10));
  assert.equal(made, 2);
  // A second answer that does not fit beside the first takes its place.
  for (const key of ['a', 'b', 'b', 'a']) small.get(key, count(6));
  assert.equal(made, 5);
  for (const options of [
    { bytesMax: 0, revision: () => 1 },
    { bytesMax: 10, revision: () => undefined },
  ]) {
    const none = createAnswerCache(options);
    for (let round = 0; round < 2; round += 1) none.get('a', count(1));
  }
  assert.equal(made, 9);
  const absent = (): undefined => void (made += 1);
  for (let round = 0; round < 2; round += 1) assert.equal(small.get('c', absent), undefined);
  assert.equal(made, 11);
});
