import assert from 'node:assert/strict';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { faults } from '../support/faults.js';
import { bytes, openUploads, readAll, readFile, store } from '../support/uploads.js';

suite('the store of uploads', () => {
  test('shows the files of a request together, and none that is not committed', async (t) => {
    const { uploads, list } = await openUploads(t);
    const upload = uploads.begin();
    const one = await upload.write('one', bytes('1'));
    await upload.write('two', bytes('2'));
    assert.deepEqual(await readAll(uploads), []);
    await upload.commit([one]);
    await upload.close();
    assert.deepEqual(await readAll(uploads), [['one', '1']]);
    assert.equal((await list()).length, 1);
  });

  test('never uses a name of a client as a path', async (t) => {
    const { directory, uploads, list } = await openUploads(t);
    await store(uploads, { '../../evil': 'x', '/etc/evil': 'y', ['__proto__']: 'z' });
    assert.deepEqual(await list(), ['1.upload', '2.upload', '3.upload']);
    assert.equal((await readdir(directory)).length, 1);
    assert.equal((await readAll(uploads)).length, 3);
  });

  test('keeps a large file byte for byte, whatever its chunks', async (t) => {
    const { uploads } = await openUploads(t);
    const chunks = Array.from({ length: 700 }, (_, index) =>
      Buffer.alloc((index * 37) % 9_000, index),
    );
    const upload = uploads.begin();
    const file = await upload.write('large', bytes(...chunks));
    await upload.commit([file]);
    const snapshot = await uploads.open();
    const whole = Buffer.concat(chunks);
    assert.equal(file.size, whole.length);
    assert.ok((await readFile(snapshot, file)).equals(whole));
    await snapshot.release();
    await upload.close();
  });

  test('keeps the old version until its last reader is done', async (t) => {
    const { uploads, list } = await openUploads(t);
    await store(uploads, { a: 'old' });
    const [first, second] = [await uploads.open(), await uploads.open()];
    await store(uploads, { a: 'new' });
    assert.equal((await list()).length, 2);
    for (const snapshot of [first, second]) {
      const [file] = snapshot.files;
      assert.ok(file);
      assert.equal((await readFile(snapshot, file)).toString(), 'old');
      await snapshot.release();
      await snapshot.release();
    }
    assert.deepEqual(await list(), ['2.upload']);
    assert.deepEqual(await readAll(uploads), [['a', 'new']]);
  });

  test('writes what a full disk takes only in pieces', async (t) => {
    const { uploads } = await openUploads(t);
    faults.writeBytesMax = 3;
    const upload = uploads.begin();
    await upload.commit([await upload.write('a', bytes('0123456', '7', '89abcdef'))]);
    faults.writeBytesMax = Infinity;
    await upload.close();
    assert.deepEqual(await readAll(uploads), [['a', '0123456789abcdef']]);
  });

  test('fails with the error of the content, and leaves nothing', async (t) => {
    const { uploads, list } = await openUploads(t);
    const failure = new Error('cut');
    const upload = uploads.begin();
    async function* content(): AsyncGenerator<readonly Buffer[], void, undefined> {
      yield [Buffer.from('half')];
      await Promise.reject(failure);
    }
    await assert.rejects(upload.write('a', content()), failure);
    await upload.close();
    assert.deepEqual(await list(), []);
  });

  test('ends a download of a file that has vanished or shrunk', async (t) => {
    const { directory, uploads } = await openUploads(t);
    await store(uploads, { a: 'content', b: 'content' });
    const [folder = ''] = await readdir(directory);
    await writeFile(join(directory, folder, '1.upload'), 'cont');
    await rm(join(directory, folder, '2.upload'));
    const snapshot = await uploads.open();
    for (const file of snapshot.files) await assert.rejects(readFile(snapshot, file), Error);
    await snapshot.release();
  });
});
