import assert from 'node:assert/strict';
import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { faults } from '../support/faults.js';
import { isLong } from '../support/long.js';
import { createDirectory, createUploads, openUploads, readAll, store } from '../support/uploads.js';
import { keepOthersServed } from '../support/prober.js';
import { startServer } from '../support/server.js';

keepOthersServed(startServer);

suite('a file operation that fails', () => {
  const codes = { ENOSPC: 'storage_full', EMFILE: 'overloaded', EIO: 'EIO' };
  const last = Number(process.env['FAULT_CALLS'] ?? 60);
  const large = 'x'.repeat(1_200_000);
  const uploadsInTurn = [{ a: large, b: '1' }, { c: '' }, { b: '2', a: 'small', d: '4' }];

  for (const [at, [code, answer]] of Object.entries(codes).entries()) {
    test(`with ${code}, at any call, leaves a clear answer, whole files, a clean folder`, async (t) => {
      let failures = 0;
      // At length each call fails with each code, else with one of them in turn.
      for (let n = isLong ? 1 : at + 1; n <= last; n += isLong ? 1 : 3) {
        const { uploads, list, directory } = await openUploads(t);
        const expected = new Map<string, string>();
        Object.assign(faults, { code, failAt: n });
        for (const contents of uploadsInTurn) {
          const error: unknown = await store(uploads, contents).catch((reason: unknown) => reason);
          if (error === undefined) {
            for (const [name, content] of Object.entries(contents)) expected.set(name, content);
          } else {
            failures += 1;
            assert.equal((error as { code?: unknown }).code, answer, `call ${n}`);
          }
          await readAll(uploads).catch((reason: unknown) => {
            failures += 1;
            assert.equal((reason as { code?: unknown }).code, code);
          });
        }
        faults.failAt = 0;
        assert.deepEqual(await readAll(uploads), [...expected], `call ${n}`);
        await store(uploads, { last: '5' });
        assert.equal((await list()).length, expected.size + 1, `call ${n}`);
        await uploads.close();
        assert.deepEqual(await readdir(directory), []);
      }
      assert.ok(failures > (isLong ? 20 : 7), `${failures} calls failed`);
    });
  }

  test('at the removal of an old folder does not stop the start', async (t) => {
    for (const n of [1, 2, 3]) {
      const directory = await createDirectory(t);
      await createUploads({ directory });
      const [old = ''] = await readdir(directory);
      await utimes(join(directory, old), 1_000, 1_000);
      Object.assign(faults, { code: 'EIO', failAt: n });
      await createUploads({ directory });
      faults.failAt = 0;
      assert.equal((await readdir(directory)).length, 2);
    }
  });
});
