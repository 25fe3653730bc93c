/** What stores of uploads with an index in a database do beyond the others. */

import assert from 'node:assert/strict';
import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { AppError, codeOf } from '../../dist/errors.js';
import type { DurableFileIndex, StoredFile } from '../../dist/store/file-index.js';
import type { Store } from '../../dist/store/store.js';
import { withCode } from '../support/errors.ts';
import { faults } from '../support/faults.ts';
import { database } from '../support/shared-postgres.ts';
import { durableStores, inSqliteFile, onPostgres, openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { bytes, createDirectory, readAll, readFile, store } from '../support/uploads.ts';
import { ageAll, type DurableOptions, listDurable, openDurable } from './upload-places.ts';

for (const { name, skip, newUrl } of durableStores) {
  const openRecords = async (t: TestContext): Promise<Store> => openOn(t, await newUrl(t));
  const open = async (t: TestContext, more: Omit<DurableOptions, 'directory'> = {}) => {
    const [records, directory] = [await openRecords(t), await createDirectory(t)];
    return { records, directory, ...(await openDurable(records, t, { directory, ...more })) };
  };

  describe(`a durable store of uploads with its index ${name}`, { skip }, () => {
    it('has its files and their order after the next start', async (t) => {
      const { records, directory, uploads } = await open(t);
      await store(uploads, { b: '1', a: '2' });
      await store(uploads, { b: 'one' });
      await uploads.close();
      const { uploads: next, logged } = await openDurable(records, t, { directory });
      await next.sweep();
      assert.deepEqual(await readAll(next), Object.entries({ b: 'one', a: '2' }));
      assert.deepEqual(logged, []);
    });

    it('flushes a file, then its folder, before the index lists it', async (t) => {
      const steps: string[] = [];
      const wrap = (index: DurableFileIndex): DurableFileIndex => ({
        ...index,
        commit: (files) => {
          steps.push(...faults.synced, 'listed');
          return index.commit(files);
        },
      });
      const { directory, uploads } = await open(t, { wrap });
      faults.synced = [];
      await store(uploads, { a: '1' });
      const folder = join(directory, 'inkwell-files');
      assert.match(steps[0] ?? '', /\.upload$/);
      assert.deepEqual(steps.slice(1), [folder, 'listed']);
    });

    it('refuses to list what took longer than 12 hours', async (t) => {
      const { directory, uploads } = await open(t);
      const began = performance.now();
      for (const [hours, code] of [
        [11.9, undefined],
        [12.1, 'request_timeout'],
      ] as const) {
        const upload = uploads.begin();
        const files = [await upload.write(`${hours}`, bytes('1'))];
        const clock = t.mock.method(performance, 'now', () => began + hours * 3_600_000);
        const error: unknown = await upload.commit(files).catch((reason: unknown) => reason);
        clock.mock.restore();
        await upload.close();
        assert.equal(codeOf(error), code, `${hours}`);
      }
      assert.deepEqual(await readAll(uploads), [['11.9', '1']]);
      assert.equal((await listDurable(directory)).length, 1);
    });

    it('removes what was replaced or removed, or no index lists, when it is a day old, and nothing else', async (t) => {
      const { records, directory, uploads } = await open(t);
      const sweep = async (): Promise<string[]> => {
        await uploads.sweep();
        return listDurable(directory);
      };
      // The sweep of the start ends before this one: it would take what is aged for garbage.
      await sweep();
      await store(uploads, { a: '1', b: '2' });
      await ageAll(directory);
      // Readers of other nodes may have begun just now.
      await store(uploads, { a: 'one' });
      const folder = join(directory, 'inkwell-files');
      for (const stray of ['old.upload', 'notes.txt']) await writeFile(join(folder, stray), 'x');
      assert.equal((await sweep()).length, 5);
      await ageAll(directory, 24 * 60 - 1);
      assert.equal((await sweep()).length, 5);
      await ageAll(directory);
      const upload = uploads.begin();
      const slow = await upload.write('slow', bytes('3'));
      await writeFile(join(folder, 'young.upload'), 'x');
      const [removed = assert.fail()] = await uploads.list('a');
      await uploads.remove(removed);
      const left = await sweep();
      assert.equal(left.length, 5);
      assert.ok(left.includes('notes.txt') && !left.includes('old.upload'));
      assert.equal((await readFile(uploads, removed)).toString(), 'one');
      await upload.commit([slow]);
      await upload.close();
      await uploads.sweep();
      assert.deepEqual(await readAll(uploads), Object.entries({ b: '2', slow: '3' }));
      // The next start begins with a sweep.
      await uploads.close();
      await ageAll(directory);
      const { uploads: next } = await openDurable(records, t, { directory });
      // Left are the two that are listed, and the notes.
      await until(
        'the removal of the young upload and of the file',
        async () => (await listDurable(directory)).length === 3,
      );
      assert.equal((await readAll(next)).length, 2);
    });

    it('says while its folder is away that nothing is stored or swept, and goes on', async (t) => {
      const { directory, uploads, logged } = await open(t);
      await uploads.sweep();
      const folder = join(directory, 'inkwell-files');
      // As where a volume is not mounted any more: a new folder would be on another disk.
      await rename(folder, `${folder}.away`);
      await uploads.sweep();
      const reason = `ENOENT: no such file or directory, utime '${folder}'`;
      assert.deepEqual(logged, [['the folder of uploads was not swept', { folder, reason }]]);
      await assert.rejects(store(uploads, { a: '1' }), { code: 'unavailable' });
      assert.match(JSON.stringify(logged[1]), /"the folder of uploads failed",\{"reason":"ENOENT/);
      await rename(`${folder}.away`, folder);
      await store(uploads, { a: '1' });
      await uploads.sweep();
      assert.equal(logged.length, 2);
      assert.deepEqual(await readAll(uploads), [['a', '1']]);
    });

    it('keeps no more replaced files than stored ones may be, and removes the oldest', async (t) => {
      const { directory, uploads, logged } = await open(t, { filesMax: 3 });
      const listed = [];
      for (let turn = 0; turn < 10; turn += 1) {
        await store(uploads, { a: String(turn) });
        listed.push(...(await uploads.list()));
      }
      await store(uploads, { a: 'last' });
      assert.equal((await listDurable(directory)).length, 4);
      const newest = listed.at(-1) ?? assert.fail();
      assert.equal((await readFile(uploads, newest)).toString(), '9');
      assert.equal(await uploads.read(listed[0] ?? assert.fail()), undefined);
      assert.deepEqual(logged, []); // nothing that is stored is missing
    });

    it('is refused with the folder of another database', async (t) => {
      const directory = await createDirectory(t);
      const records = await openRecords(t);
      await (await openDurable(records, t, { directory })).uploads.close();
      const other = await createDirectory(t);
      const fault = /^Error: UPLOAD_DIR: .*inkwell-files/;
      const refused = (at: string, of: Store): Promise<void> =>
        assert.rejects(openDurable(of, t, { directory: at }), fault);
      await refused(other, records);
      await refused(other, records);
      await records.close();
      const next = await openRecords(t);
      const full = await createDirectory(t);
      await mkdir(join(full, 'inkwell-files'));
      await writeFile(join(full, 'inkwell-files', 'a.upload'), 'of another database');
      await refused(full, next);
      await store((await openDurable(next, t, { directory })).uploads, { a: '1' });
      assert.equal((await listDurable(full)).length, 1);
      const folder = join(directory, 'inkwell-files');
      assert.equal((await stat(folder)).mode & 0o777, 0o700);
      await writeFile(join(folder, 'id'), 'another');
      await refused(directory, next);
    });

    it('keeps what a commit without an answer may have stored, and removes the rest a day later', async (t) => {
      let isStored = true;
      const wrap = (real: DurableFileIndex): DurableFileIndex => ({
        ...real,
        async commit(files: readonly StoredFile[]) {
          if (isStored) await real.commit(files);
          throw new AppError('overloaded', 'The answer was lost.');
        },
      });
      const { directory, uploads } = await open(t, { wrap });
      await assert.rejects(store(uploads, { a: '1', b: '2' }), withCode('overloaded'));
      isStored = false;
      await assert.rejects(store(uploads, { a: 'never', c: 'never' }), withCode('overloaded'));
      await uploads.sweep();
      assert.equal((await listDurable(directory)).length, 4);
      await ageAll(directory);
      await uploads.sweep();
      assert.equal((await listDurable(directory)).length, 2);
      assert.deepEqual(await readAll(uploads), Object.entries({ a: '1', b: '2' }));
    });
  });
}

describe('a store of uploads with its index in PostgreSQL', { skip: onPostgres.skip }, () => {
  it('refuses while the database is away, removes what it wrote, and goes on', async (t) => {
    const records = await openOn(t, await database.clearedDatabase());
    const directory = await createDirectory(t);
    const { uploads } = await openDurable(records, t, { directory });
    await store(uploads, { a: '1' });
    await database.stop('SIGINT');
    try {
      await assert.rejects(store(uploads, { b: '2' }), withCode('unavailable'));
      await assert.rejects(async () => uploads.list(), withCode('unavailable'));
    } finally {
      await database.start();
    }
    // A node dials again only now and then.
    await until('the database is found again', async () =>
      store(uploads, { c: '3' }).then(
        () => true,
        () => false,
      ),
    );
    await ageAll(directory);
    await uploads.sweep();
    assert.deepEqual(await readAll(uploads), Object.entries({ a: '1', c: '3' }));
    assert.equal((await listDurable(directory)).length, 2);
  });
});

describe('a store of uploads with its index in SQLite', { skip: inSqliteFile.skip }, () => {
  it('stops although its index does not answer', async (t) => {
    const directory = await createDirectory(t);
    const never = (): Promise<never> => new Promise(() => undefined);
    let isAway = false;
    const records = await openOn(t, await inSqliteFile.newUrl(t));
    const { uploads } = await openDurable(records, t, {
      directory,
      wrap: (index) => ({ ...index, list: (name) => (isAway ? never() : index.list(name)) }),
    });
    isAway = true;
    void uploads.sweep();
    await uploads.close();
    await assert.rejects(store(uploads, { a: '1' }), withCode('draining'));
  });
});
