/** What a store of uploads with its index in a database does beyond the contract. */

import assert from 'node:assert/strict';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createIdSource } from '../../dist/domain/scalars.js';
import { AppError } from '../../dist/errors.js';
import { openUploads } from '../../dist/store/files/open.js';
import type { Uploads } from '../../dist/store/files/uploads.js';
import type { DurableFileIndex, FileLimits, StoredFile } from '../../dist/store/file-index.js';
import type { Store } from '../../dist/store/store.js';
import { withCode } from '../support/errors.js';
import { faults } from '../support/faults.js';
import { isLong } from '../support/long.js';
import { bytes, createDirectory, readAll, readFile, store } from '../support/uploads.js';
import { listDurable } from './uploads-suite.js';

export interface Options {
  readonly directory: string;
  readonly filesMax?: number;
  readonly bytesMax?: number;
  /** What stands between the store of uploads and the index. */
  readonly wrap?: (index: DurableFileIndex) => DurableFileIndex;
}

export interface Opened {
  readonly uploads: Uploads;
  readonly logged: (readonly [event: string, facts: Readonly<Record<string, unknown>>])[];
}

export type OpenRecords = (context: TestContext) => Promise<Store>;

export async function openDurable(
  records: Pick<Store, 'openFileIndex'>,
  context: TestContext,
  more: Options,
): Promise<Opened> {
  const { openFileIndex } = records;
  assert.ok(openFileIndex);
  const { wrap = (index: DurableFileIndex): DurableFileIndex => index, ...options } = more;
  const logged: [string, Readonly<Record<string, unknown>>][] = [];
  const uploads = await openUploads({
    filesMax: 100,
    bytesMax: 1_000_000_000,
    createName: createIdSource(() => new Date()),
    openIndex: (limits: FileLimits) => wrap(openFileIndex(limits)),
    log: (_level, event, facts = {}) => logged.push([event, facts]),
    ...options,
  });
  context.after(() => uploads.close());
  return { uploads, logged };
}

export function describeDurable(name: string, openRecords: OpenRecords): void {
  describe(`a durable store of uploads with its index ${name}`, () => {
    it('has its files and their order after the next start', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const { uploads } = await openDurable(records, t, { directory });
      await store(uploads, { b: '1', a: '2' });
      await store(uploads, { b: 'one' });
      await uploads.close();
      const { uploads: next, logged } = await openDurable(records, t, { directory });
      await next.sweep();
      assert.deepEqual(await readAll(next), [
        ['b', 'one'],
        ['a', '2'],
      ]);
      assert.deepEqual(logged, []);
    });

    it('removes what no index lists and is a day old, and nothing else', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const { uploads } = await openDurable(records, t, { directory });
      await store(uploads, { a: '1', b: '2' });
      const folder = join(directory, 'inkwell-files');
      for (const stray of ['old.upload', 'notes.txt']) await writeFile(join(folder, stray), 'x');
      await ageAll(directory);
      const upload = uploads.begin();
      const slow = await upload.write('slow', bytes('3'));
      await writeFile(join(folder, 'young.upload'), 'x');
      await uploads.sweep();
      const left = await listDurable(directory);
      assert.equal(left.length, 5);
      assert.ok(!left.includes('old.upload'));
      await upload.commit([slow]);
      await upload.close();
      await uploads.sweep();
      assert.deepEqual(await readAll(uploads), [
        ['a', '1'],
        ['b', '2'],
        ['slow', '3'],
      ]);
    });

    it('keeps no more replaced files than stored ones may be, and removes the oldest', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const { uploads } = await openDurable(records, t, { directory, filesMax: 3 });
      const snapshots = [];
      for (let turn = 0; turn < 10; turn += 1) {
        await store(uploads, { a: String(turn) });
        snapshots.push(await uploads.open());
      }
      await store(uploads, { a: 'last' });
      assert.equal((await listDurable(directory)).length, 4);
      const newest = snapshots.at(-1) ?? assert.fail();
      const [file] = newest.files;
      assert.equal((await readFile(newest, file ?? assert.fail())).toString(), '9');
      for (const snapshot of snapshots) await snapshot.release();
    });

    it('is refused with the folder of another database', async (t) => {
      const directory = await createDirectory(t);
      const records = await openRecords(t);
      await (await openDurable(records, t, { directory })).uploads.close();
      const other = await createDirectory(t);
      const refused = (at: string, of: Store): Promise<void> =>
        assert.rejects(
          openDurable(of, t, { directory: at }),
          /^Error: UPLOAD_DIR: .*inkwell-files/,
        );
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
    });

    it('keeps what a commit without an answer may have stored, and removes the rest a day later', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      let isStored = true;
      const wrap = (real: DurableFileIndex): DurableFileIndex => ({
        ...real,
        async commit(files: readonly StoredFile[]) {
          if (isStored) await real.commit(files);
          throw new AppError('overloaded', 'The answer was lost.');
        },
      });
      const { uploads } = await openDurable(records, t, { directory, wrap });
      await assert.rejects(store(uploads, { a: '1', b: '2' }), withCode('overloaded'));
      isStored = false;
      await assert.rejects(store(uploads, { a: 'never', c: 'never' }), withCode('overloaded'));
      await uploads.sweep();
      assert.equal((await listDurable(directory)).length, 4);
      await ageAll(directory);
      await uploads.sweep();
      assert.equal((await listDurable(directory)).length, 2);
      assert.deepEqual(await readAll(uploads), [
        ['a', '1'],
        ['b', '2'],
      ]);
    });

    it('writes nothing while its index does not answer', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      let isAway = false;
      const wrap = (real: DurableFileIndex): DurableFileIndex => ({
        ...real,
        list: (asked) =>
          isAway ? Promise.reject(new AppError('unavailable', 'Away.')) : real.list(asked),
      });
      const { uploads } = await openDurable(records, t, { directory, wrap });
      await uploads.sweep();
      isAway = true;
      const upload = uploads.begin();
      await assert.rejects(upload.write('a', bytes('1')), withCode('unavailable'));
      assert.deepEqual(await listDurable(directory), []);
    });

    describeFaults(openRecords);
  });
}

/** As if every file were older than a day. */
export async function ageAll(directory: string): Promise<void> {
  for (const name of await listDurable(directory)) {
    await utimes(join(directory, 'inkwell-files', name), 1_000, 1_000);
  }
}

/** The n-th call of all that are made fails; the files of round n have n before their names. */
function describeFaults(openRecords: OpenRecords): void {
  const last = Number(process.env['FAULT_CALLS'] ?? 45);
  const codes = ['ENOSPC', 'EMFILE', 'EIO'] as const;
  const responses = { ENOSPC: 'storage_full', EMFILE: 'overloaded', EIO: 'EIO' };
  const contentsInTurn = [{ a: 'x'.repeat(1_200_000), b: '1' }, { c: '' }, { b: '2', d: '4' }];

  it('leaves a clear answer, whole files and a clean folder when any call fails', async (t) => {
    const records = await openRecords(t);
    const directory = await createDirectory(t);
    const expected = new Map<string, string>();
    let failures = 0;
    for (let n = 1; n <= last; n += isLong ? 1 : 8) {
      const code = codes[n % codes.length] ?? 'EIO';
      const more = { directory, filesMax: 10_000 };
      const { uploads, logged } = await openDurable(records, t, more);
      await uploads.sweep();
      assert.deepEqual(logged, []);
      Object.assign(faults, { code, failAt: n });
      for (const contents of contentsInTurn) {
        const mine = Object.entries(contents).map(([name, text]) => [`${n}${name}`, text] as const);
        const error: unknown = await store(uploads, Object.fromEntries(mine)).catch(
          (reason: unknown) => reason,
        );
        if (error === undefined) {
          for (const [name, text] of mine) expected.set(name, text);
        } else {
          failures += 1;
          assert.equal((error as { code?: unknown }).code, responses[code], `call ${n}`);
        }
      }
      faults.failAt = 0;
      await store(uploads, { last: String(n) });
      await ageAll(directory);
      await uploads.sweep();
      const names = (await uploads.open()).files.map(({ storedName }) => storedName);
      assert.equal(names.length, expected.size + 1, `call ${n}`);
      assert.equal((await listDurable(directory)).length, names.length, `call ${n}`);
      await uploads.close();
    }
    const { uploads } = await openDurable(records, t, { directory });
    const found = new Map(await readAll(uploads));
    assert.ok(found.delete('last'));
    assert.deepEqual([...found], [...expected]);
    assert.ok(failures > (isLong ? 20 : 2), `${failures} calls failed`);
  });
}
