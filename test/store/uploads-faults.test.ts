/** File operations that fail, at any call, in every store of uploads. */

import assert from 'node:assert/strict';
import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { withCode } from '../support/errors.ts';
import { faults } from '../support/faults.ts';
import { isLong } from '../support/long.ts';
import { createDirectory, createUploads, readAll, store } from '../support/uploads.ts';
import { ageAll, uploadPlaces } from './upload-places.ts';

const codes = { ENOSPC: 'storage_full', EMFILE: 'overloaded', EIO: 'unavailable' };
const last = Number(process.env['FAULT_CALLS'] ?? 60);
const large = 'x'.repeat(1_200_000);
const uploadsInTurn = [{ a: large, b: '1' }, { c: '' }, { b: '2', a: 'small', d: '4' }];

for (const { name, skip, isDurable, open } of uploadPlaces) {
  suite(`a file operation that fails ${name}`, { skip }, () => {
    for (const [at, [code, answer]] of Object.entries(codes).entries()) {
      test(`with ${code}, leaves a clear answer, whole files, a clean folder`, async (t) => {
        let failures = 0;
        // At length each call fails with each code, else some of them with one of them in turn.
        const step = isLong ? 1 : isDurable ? 24 : 3;
        for (let n = isLong ? 1 : 1 + (at * step) / 3; n <= last; n += step) {
          // A test of its own, so that its store is closed before the next one is opened.
          await t.test(`call ${n}`, async (call) => {
            const place = await open(call, { filesMax: 10_000, nodes: 1 });
            const { one: uploads, list, directory } = place;
            await uploads.sweep();
            const expected = new Map<string, string>();
            Object.assign(faults, { code, failAt: n });
            for (const contents of uploadsInTurn) {
              const error = await store(uploads, contents).catch((reason: unknown) => reason);
              if (error === undefined) {
                for (const [file, content] of Object.entries(contents)) expected.set(file, content);
              } else {
                failures += 1;
                assert.equal((error as { code?: unknown }).code, answer, `call ${n}`);
              }
              await readAll(uploads).catch((reason: unknown) => {
                failures += 1;
                // An open file fails in the middle of a response, which has no other status then.
                const { code: found = '' } = reason as { code?: string };
                assert.ok([code, answer].includes(found), `${found} ${JSON.stringify(contents)}`);
              });
            }
            faults.failAt = 0;
            assert.deepEqual(await readAll(uploads), [...expected], `call ${n}`);
            await store(uploads, { last: '5' });
            if (isDurable) await ageAll(directory);
            await uploads.sweep();
            assert.equal((await list()).length, expected.size + 1, `call ${n}`);
            assert.equal((await readAll(uploads)).length, expected.size + 1);
            await uploads.close();
            if (!isDurable) assert.deepEqual(await readdir(directory), []);
          });
        }
        const failuresMin = isDurable ? 1 : 8;
        assert.ok(failures >= (isLong ? 21 : failuresMin), `${failures} calls failed`);
      });
    }
  });
}

test('a reader is told of a shortage of descriptors as a writer is', async (t) => {
  const uploads = await createUploads({ directory: await createDirectory(t) });
  await store(uploads, { a: '1' });
  const [file] = await uploads.list('a');
  Object.assign(faults, { code: 'EMFILE', failAt: 1 });
  await assert.rejects(uploads.read(file ?? assert.fail()), withCode('overloaded'));
  faults.failAt = 0;
  await (await uploads.read(file ?? assert.fail()))?.return();
});

test('an old folder that cannot be removed does not stop the start', async (t) => {
  for (const n of [1, 2, 3]) {
    const directory = await createDirectory(t);
    await createUploads({ directory });
    const [old = ''] = await readdir(directory);
    await utimes(join(directory, old), 1_000, 1_000);
    Object.assign(faults, { code: 'EIO', failAt: n });
    await createUploads({ directory });
    faults.failAt = 0;
    assert.equal((await readdir(directory)).length, 2, `${n}`);
  }
});
