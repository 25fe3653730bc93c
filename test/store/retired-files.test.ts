import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetiredFiles } from '../../dist/store/files/retired.js';
import { openUploads, store } from '../support/uploads.ts';

const toFile = (temporaryName: string, size = 1) => ({ temporaryName, size });

test('a retired file goes after its time, or when nobody reads', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const retired = new RetiredFiles({ filesMax: 10, bytesMax: 1e6 }, 1_000);
  const end = retired.beginReader();
  retired.add(toFile('a'));
  now = 999;
  retired.add(toFile('b'));
  assert.deepEqual(retired.takeOld(), []);
  now = 1_000;
  assert.deepEqual(retired.takeOld(), ['a']);
  now = 2_000;
  assert.deepEqual(retired.takeOld(), ['b']);
  retired.add(toFile('c'));
  assert.deepEqual(retired.takeOld(), []);
  end();
  assert.deepEqual(retired.takeOld(), ['c']);
});

test('beyond the limits the oldest goes before its time', () => {
  for (const limits of [
    { filesMax: 2, bytesMax: 1e6 },
    { filesMax: 10, bytesMax: 2 * 4_100 },
  ]) {
    const retired = new RetiredFiles(limits, Infinity);
    retired.beginReader();
    for (const name of ['a', 'b', 'c']) retired.add(toFile(name));
    assert.deepEqual(retired.takeOld(), ['a'], JSON.stringify(limits));
    retired.delete('b');
    for (const name of ['d', 'd']) retired.add(toFile(name));
    assert.deepEqual(retired.takeOld(), [], JSON.stringify(limits));
  }
});

test('what a download of all files may still read stays until it ends', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const { uploads } = await openUploads(t);
  await store(uploads, { a: 'old' });
  const [file] = await uploads.list();
  const end = uploads.keepReplaced();
  await store(uploads, { a: 'new' });
  now = 60_000;
  await uploads.sweep();
  const read = () => uploads.read(file ?? assert.fail());
  await (await read())?.return();
  end();
  await uploads.sweep();
  assert.equal(await read(), undefined);
  await uploads.close();
});
