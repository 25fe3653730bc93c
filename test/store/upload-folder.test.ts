import assert from 'node:assert/strict';
import { mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { fileOperations } from '../../dist/store/files/operations.js';
import type { Run } from '../../dist/store/files/run-folder.js';
import type { Uploads } from '../../dist/store/uploads.js';
import { withCode } from '../support/errors.js';
import {
  createDirectory,
  createUploads,
  openUploads,
  readAll,
  run,
  store,
} from '../support/uploads.js';

suite('the folder of a run', () => {
  test('is open to its user only, holds nothing but uploads, and goes with a clean stop', async (t) => {
    const { directory, uploads } = await openUploads(t);
    const [folder = ''] = await readdir(directory);
    assert.equal((await stat(join(directory, folder))).mode & 0o777, 0o700);
    await store(uploads, { a: '1' });
    assert.equal((await stat(join(directory, folder, '1.upload'))).mode & 0o777, 0o600);
    await uploads.close();
    assert.deepEqual(await readdir(directory), []);
    await assert.rejects(store(uploads, { a: '2' }), withCode('draining'));
    await assert.rejects(async () => uploads.open(), withCode('draining'));
  });

  test('is told from stray files, which are never given back', async (t) => {
    const { directory, uploads } = await openUploads(t);
    const [folder = ''] = await readdir(directory);
    await writeFile(join(directory, folder, 'stray.txt'), 'x');
    assert.deepEqual(await readAll(uploads), []);
  });

  test('is removed by a later run once its own is over, and nothing else is', async (t) => {
    const directory = await createDirectory(t);
    const create = (which: Run): Promise<Uploads> =>
      createUploads({
        directory,
        run: which,
        storedFilesMax: 1,
        files: fileOperations,
      });
    await store(await create({ ...run, pid: 7 }), { a: 'dead' });
    const [dead = ''] = await readdir(directory);
    const isRunning = (pid: number): boolean => [8, 100].includes(pid);
    const living = [
      { ...run, pid: 8, isRunning },
      { ...run, isRunning },
      { ...run, host: 'elsewhere', pid: 7, isRunning },
    ];
    const mine = { ...run, isRunning: (pid: number): boolean => pid !== 7 };
    for (const each of living) await create(each);
    assert.ok(!(await readdir(directory)).includes(dead));

    const others = ['inkwell', `${dead}x`, 'notes', dead.replace('-7-', '--')];
    for (const name of others) await mkdir(join(directory, name));
    await writeFile(join(directory, dead), 'a file');
    await symlink('/nowhere', join(directory, dead.replace('-7-', '-9-')));
    const before = await readdir(directory);
    await create(mine);
    const after = await readdir(directory);
    assert.deepEqual(
      before.filter((name) => !after.includes(name)),
      [],
    );
    assert.equal(after.length, before.length + 1);
  });

  test('of an earlier process with the same id is removed, one of the same process is not', async (t) => {
    const directory = await createDirectory(t);
    const more = { directory, storedFilesMax: 1, files: fileOperations };
    await createUploads({ ...more, run: { ...run, startedAt: 4_000 } });
    await createUploads({ ...more, run });
    await createUploads({ ...more, run });
    const names = await readdir(directory);
    assert.equal(names.length, 2);
    assert.ok(names.every((name) => name.includes('-100-5000-')));
  });

  test('that cannot be made is an error at start', async (t) => {
    const directory = join(await createDirectory(t), 'missing');
    const more = { storedFilesMax: 1, files: fileOperations };
    await assert.rejects(createUploads({ ...more, directory, run }), /UPLOAD_DIR/);
  });
});
