/** What a store of uploads with its index in a database does beyond the contract. */

import assert from 'node:assert/strict';
import { rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createIdSource } from '../../dist/domain/ids.js';
import { AppError } from '../../dist/errors.js';
import { openUploads } from '../../dist/store/files/open.js';
import { type FileOperations, fileOperations } from '../../dist/store/files/operations.js';
import type { IndexedUploads } from '../../dist/store/files/uploads.js';
import type { FileIndex, FileIndexOptions } from '../../dist/store/file-index.js';
import type { Store } from '../../dist/store/store.js';
import type { WrittenFile } from '../../dist/store/uploads.js';
import { withCode } from '../support/errors.js';
import { withFaults } from '../support/faults.js';
import { isLong } from '../support/long.js';
import { bytes, createDirectory, readAll, run, store } from '../support/uploads.js';
import { listDurable } from './uploads-suite.js';

export interface Options {
  readonly directory: string;
  readonly files?: FileOperations;
  readonly storedFilesMax?: number;
  readonly storedBytesMax?: number;
  readonly graceSeconds?: number;
  /** What stands between the store of uploads and the index. */
  readonly wrap?: (index: FileIndex) => FileIndex;
}

export interface Opened {
  readonly uploads: IndexedUploads;
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
  const { wrap = (index: FileIndex): FileIndex => index, ...options } = more;
  const logged: [string, Readonly<Record<string, unknown>>][] = [];
  const uploads = await openUploads({
    run,
    storedFilesMax: 100,
    storedBytesMax: 1_000_000_000,
    createName: createIdSource(() => new Date()),
    openIndex: (given: FileIndexOptions) => wrap(openFileIndex(given)),
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
      await next.checked;
      assert.deepEqual(await readAll(next), [
        ['b', 'one'],
        ['a', '2'],
      ]);
      assert.deepEqual(logged, []);
    });

    it('removes replaced files after their time, but none that is being read', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const { uploads } = await openDurable(records, t, { directory, graceSeconds: 1 });
      await store(uploads, { a: 'old', b: 'kept' });
      const snapshot = await uploads.open();
      await store(uploads, { a: 'between' });
      await store(uploads, { a: 'new' });
      // The timer says ten times in the time of one file's grace what is being read.
      await waitForFiles(directory, 3);
      const [file] = snapshot.files;
      assert.ok(file);
      const read: Buffer[] = [];
      for await (const chunk of snapshot.read(file)) read.push(chunk);
      assert.equal(Buffer.concat(read).toString(), 'old');
      await snapshot.release();
      await waitForFiles(directory, 2);
    });

    it('keeps no more replaced files than stored ones may be, and removes the oldest', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const { uploads } = await openDurable(records, t, { directory, storedFilesMax: 3 });
      for (let turn = 0; turn < 10; turn += 1) await store(uploads, { a: String(turn) });
      const snapshot = await uploads.open();
      await store(uploads, { a: 'last' });
      await uploads.sweep();
      assert.equal((await listDurable(directory)).length, 4);
      const [file] = snapshot.files;
      assert.ok(file);
      for await (const chunk of snapshot.read(file)) assert.equal(chunk.toString(), '9');
    });

    it('sweeps by itself when a hundred were replaced, also by many at once', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const files = { ...fileOperations, sync: (): Promise<void> => Promise.resolve() };
      const { uploads } = await openDurable(records, t, { directory, files, storedFilesMax: 3 });
      await Promise.all(Array.from({ length: 150 }, () => store(uploads, { a: 'x' })));
      await waitForFiles(directory, 100);
    });

    it('tells at start of files without an entry and entries without a file', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const { uploads } = await openDurable(records, t, { directory });
      await store(uploads, { lost: '1', there: '2' });
      const [file] = (await uploads.open()).files;
      await uploads.close();
      const folder = join(directory, 'inkwell-files');
      await rm(join(folder, file?.temporaryName ?? ''));
      await writeFile(join(folder, 'old.upload'), 'x');
      await utimes(join(folder, 'old.upload'), 1_000, 1_000);
      await writeFile(join(folder, 'young.upload'), 'x');

      const { uploads: next, logged } = await openDurable(records, t, { directory });
      await next.checked;
      const [[event, facts] = ['', {}], ...others] = logged;
      assert.deepEqual(others, []);
      assert.equal(event, 'stored files and their index differ');
      const { files, ...rest } = facts;
      assert.deepEqual(String(files).split(', ').toSorted(), ['old.upload', 'young.upload']);
      assert.deepEqual(rest, {
        folder,
        filesWithoutEntry: 2,
        youngerThanAnHour: 1,
        entriesWithoutFile: 1,
        entries: `lost (${file?.temporaryName})`,
      });
      assert.equal((await listDurable(directory)).length, 3);
      await assert.rejects(readAll(next), { code: 'ENOENT' });
      await store(next, { lost: 'again' });
      assert.deepEqual(await readAll(next), [
        ['lost', 'again'],
        ['there', '2'],
      ]);
    });

    it('does not tell of what is just being uploaded here', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      let written = (): void => undefined;
      const isWritten = new Promise<void>((resolve) => {
        written = resolve;
      });
      const files: FileOperations = {
        ...fileOperations,
        async listNames(path, max) {
          await isWritten;
          return fileOperations.listNames(path, max);
        },
      };
      const { uploads, logged } = await openDurable(records, t, { directory, files });
      const upload = uploads.begin();
      await upload.write('a', bytes('1'));
      written();
      await uploads.checked;
      assert.deepEqual(logged, []);
      assert.equal((await listDurable(directory)).length, 1);
      await upload.close();
    });

    it('keeps or removes as one what a commit without an answer may have kept', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      const given: (readonly WrittenFile[])[] = [];
      let isKept = true;
      let index: FileIndex | undefined;
      const wrap = (real: FileIndex): FileIndex => {
        index = real;
        return {
          ...real,
          async commit(files) {
            given.push(files);
            if (isKept) await real.commit(files);
            throw new AppError('overloaded', 'The answer was lost.');
          },
        };
      };
      const { uploads } = await openDurable(records, t, { directory, wrap });
      await assert.rejects(store(uploads, { a: '1', b: '2' }), withCode('overloaded'));
      isKept = false;
      await assert.rejects(store(uploads, { a: 'never', c: 'never' }), withCode('overloaded'));
      assert.equal((await listDurable(directory)).length, 4);
      await uploads.sweep();
      assert.equal((await listDurable(directory)).length, 2);
      // One that was only late, and comes after that.
      await assert.rejects(async () => index?.commit(given[1] ?? []), /given up/);
      assert.deepEqual(await readAll(uploads), [
        ['a', '1'],
        ['b', '2'],
      ]);
    });

    it('refuses uploads while more than a thousand may be kept or not', async (t) => {
      const records = await openRecords(t);
      const directory = await createDirectory(t);
      let isAway = true;
      const fail = (): Promise<never> => Promise.reject(new AppError('unavailable', 'Away.'));
      const wrap = (real: FileIndex): FileIndex => ({
        ...real,
        commit: (files) => (isAway ? fail() : real.commit(files)),
        abandon: (names) => (isAway ? fail() : real.abandon(names)),
      });
      const files = { ...fileOperations, sync: (): Promise<void> => Promise.resolve() };
      const { uploads } = await openDurable(records, t, { directory, wrap, files });
      const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${at}`, 'x']));
      await assert.rejects(store(uploads, many), withCode('unavailable'));
      await assert.rejects(store(uploads, { a: '1' }), withCode('unavailable'));
      assert.equal((await listDurable(directory)).length, 1_000);
      isAway = false;
      await uploads.sweep();
      await store(uploads, { a: '1' });
      assert.deepEqual(await readAll(uploads), [['a', '1']]);
      assert.equal((await listDurable(directory)).length, 1);
    });

    describeFaults(openRecords);
  });
}

/** Until no more are on the disk: what nobody needs is removed in the background. */
async function waitForFiles(directory: string, most: number): Promise<void> {
  while ((await listDurable(directory)).length > most) {
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
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
      const { files, failAt } = withFaults(code);
      const more = { directory, files, storedFilesMax: 10_000, graceSeconds: 0 };
      const { uploads, logged } = await openDurable(records, t, more);
      await uploads.checked;
      assert.deepEqual(logged, []);
      failAt(n);
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
      failAt(0);
      await store(uploads, { last: String(n) });
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
