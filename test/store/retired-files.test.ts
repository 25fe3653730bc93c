import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetiredFiles } from '../../dist/store/files/retired.js';

const toFile = (temporaryName: string, size = 0) => ({ temporaryName, size });

test('a retired file goes when all readers that began before have ended', () => {
  const retired = new RetiredFiles({ filesMax: 10, bytesMax: 1e6 });
  const [endFirst, endSecond] = [retired.beginReader(), retired.beginReader()];
  retired.add(toFile('a'));
  const endThird = retired.beginReader();
  retired.add(toFile('b'));
  retired.add(toFile('a'));
  endSecond();
  assert.deepEqual(retired.takeUnread(), []);
  endFirst();
  endFirst();
  assert.deepEqual(retired.takeUnread(), ['a']);
  assert.deepEqual(retired.takeUnread(), []);
  endThird();
  assert.deepEqual(retired.takeUnread(), ['b']);
  retired.add(toFile('c'));
  assert.deepEqual(retired.takeUnread(), ['c']);
});

test('beyond the limits the oldest retired files go although they are read', () => {
  const retired = new RetiredFiles({ filesMax: 2, bytesMax: 20_000 });
  retired.beginReader();
  for (const name of ['a', 'b', 'c', 'd']) retired.add(toFile(name));
  assert.deepEqual(retired.takeUnread(), ['a', 'b']);
  retired.delete('c');
  // An empty file takes a block of 4 KiB.
  retired.add(toFile('e', 20_000 - 2 * 4_096));
  assert.deepEqual(retired.takeUnread(), []);
  retired.add(toFile('f', 1));
  assert.deepEqual(retired.takeUnread(), ['d', 'e']);
});
