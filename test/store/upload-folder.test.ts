import assert from 'node:assert/strict';
import { mkdir, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { RetiredFiles } from '../../dist/store/files/retired.js';
import {
  createDirectory,
  createUploads,
  openUploads,
  readAll,
  readFile,
  store,
} from '../support/uploads.ts';

suite('the folder of a run', () => {
  test('is open to its user only, gives nothing but uploads, and goes with a clean stop', async (t) => {
    const { directory, uploads } = await openUploads(t);
    const [folder = ''] = await readdir(directory);
    assert.equal((await stat(join(directory, folder))).mode & 0o777, 0o700);
    await store(uploads, { a: '1' });
    assert.equal((await stat(join(directory, folder, '1.upload'))).mode & 0o777, 0o600);
    await writeFile(join(directory, folder, 'stray.txt'), 'x');
    assert.deepEqual(await readAll(uploads), [['a', '1']]);
    await uploads.close();
    assert.deepEqual(await readdir(directory), []);
  });

  test('is removed by another run after a day without its own, and nothing else is', async (t) => {
    const directory = await createDirectory(t);
    await store(await createUploads({ directory }), { a: 'dead' });
    const [dead = ''] = await readdir(directory);
    // Process ids and host names say nothing: two containers can have both in common.
    const living = await createUploads({ directory });
    assert.ok((await readdir(directory)).includes(dead));

    const others = ['inkwell', `${dead}x`, 'notes', 'inkwell-run-'];
    for (const name of others) await mkdir(join(directory, name));
    await symlink(join(directory, 'notes'), join(directory, 'inkwell-run-symlin'));
    const before = await readdir(directory);
    for (const name of before) await utimes(join(directory, name), 1_000, 1_000);
    // As its timer does every ten minutes.
    await living.sweep();
    await createUploads({ directory });
    const after = await readdir(directory);
    const found = before.filter((name) => !after.includes(name));
    assert.deepEqual(found, [dead]);
    assert.equal(after.length, before.length);
  });

  test('is made again for the next upload where it was removed', async (t) => {
    const { directory, uploads, list } = await openUploads(t);
    await store(uploads, { a: '1' });
    const [folder = ''] = await readdir(directory);
    await rm(join(directory, folder), { recursive: true });
    await Promise.all(['b', 'c'].map((name) => store(uploads, { [name]: '2' })));
    assert.equal((await list()).length, 2);
    assert.equal((await stat(join(directory, folder))).mode & 0o777, 0o700);
    await uploads.close();
    await assert.rejects(store(uploads, { d: '3' }), { code: 'draining' });
    assert.deepEqual(await readdir(directory), []);
  });

  test('has no old files for what cleans temporary folders', async (t) => {
    const { directory, uploads, list } = await openUploads(t);
    await store(uploads, { a: '1', b: '2' });
    const [folder = ''] = await readdir(directory);
    const paths = (await list()).map((name) => join(directory, folder, name));
    for (const path of paths) await utimes(path, 1_000, 1_000);
    await uploads.sweep();
    for (const path of paths) assert.ok((await stat(path)).mtimeMs > 1e12, path);
  });

  test('ends a download of a file in it that has vanished or shrunk', async (t) => {
    const { directory, uploads } = await openUploads(t);
    await store(uploads, { a: 'content', b: 'content' });
    const [folder = ''] = await readdir(directory);
    await writeFile(join(directory, folder, '1.upload'), 'cont');
    await rm(join(directory, folder, '2.upload'));
    const [shrunk, vanished] = await uploads.list();
    assert.ok(shrunk && vanished);
    await assert.rejects(readFile(uploads, shrunk), Error);
    assert.equal(await uploads.read(vanished), undefined);
  });

  test('that cannot be made is an error at start', async (t) => {
    const directory = join(await createDirectory(t), 'missing');
    await assert.rejects(createUploads({ directory }), /UPLOAD_DIR/);
  });
});

test('beyond the limits the oldest goes before its time', () => {
  for (const limits of [
    { filesMax: 2, bytesMax: 1e6 },
    { filesMax: 10, bytesMax: 2 * 4_100 },
  ]) {
    const retired = new RetiredFiles(limits, Infinity);
    const add = (temporaryName: string) => retired.add({ temporaryName, size: 1 });
    retired.beginReader();
    for (const name of ['a', 'b', 'c']) add(name);
    assert.deepEqual(retired.takeOld(), ['a'], JSON.stringify(limits));
    retired.delete('b');
    for (const name of ['d', 'd']) add(name);
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
