/** What every store of uploads has to prove, whatever keeps its index. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import type { Uploads } from '../../dist/store/files/uploads.js';
import { withCode } from '../support/errors.js';
import { anyCodeUnit } from '../support/texts.js';
import { bytes, readAll, readFile, store } from '../support/uploads.js';
import { cases } from '../support/long.js';

export interface UploadsDriver {
  readonly name: string;
  /** Why its tests cannot run here, or false. */
  readonly skip: string | false;
  /** Stores of their own, on one index and one folder; closed and gone with the test. */
  open(context: TestContext, options: OpenOptions): Promise<readonly Uploads[]>;
}

export interface OpenOptions {
  readonly filesMax: number;
  readonly bytesMax: number;
  /** As many as the driver can have. */
  readonly nodes: number;
}

const defaults: OpenOptions = { filesMax: 100, bytesMax: 1_000_000_000, nodes: 2 };

export function describeUploads(driver: UploadsDriver): void {
  const open = async (
    context: TestContext,
    more: Partial<OpenOptions> = {},
  ): Promise<{ readonly one: Uploads; readonly other: Uploads }> => {
    const stores = await driver.open(context, { ...defaults, ...more });
    const [one] = stores;
    const other = stores.at(-1);
    assert.ok(one !== undefined && other !== undefined);
    return { one, other };
  };

  describe(`the store of uploads ${driver.name}`, { skip: driver.skip }, () => {
    it('gives files back in the order in which they came; a replaced one keeps its place', async (t) => {
      const { one, other } = await open(t);
      await store(one, { b: '1', a: '2', c: '' });
      await store(other, { a: 'two' });
      await store(one, { d: '4', b: 'one' });
      const expected = Object.entries({ b: 'one', a: 'two', c: '', d: '4' });
      for (const each of [one, other]) assert.deepEqual(await readAll(each), expected);
    });

    it('shows the files of a request together, and none that is not committed', async (t) => {
      const { one, other } = await open(t);
      const upload = one.begin();
      const first = await upload.write('one', bytes('1'));
      await upload.write('two', bytes('2'));
      assert.deepEqual(await readAll(other), []);
      await upload.commit([first]);
      await upload.close();
      assert.deepEqual(await readAll(other), [['one', '1']]);
    });

    it('keeps the later of two files of one name in a request', async (t) => {
      const { one } = await open(t);
      const upload = one.begin();
      const written = [];
      for (const [name, text] of [
        ['a', '1'],
        ['b', '2'],
        ['a', '3'],
      ] as const) {
        written.push(await upload.write(name, bytes(text)));
      }
      await upload.commit(written);
      await upload.commit([]);
      await upload.close();
      assert.deepEqual(await readAll(one), [
        ['a', '3'],
        ['b', '2'],
      ]);
    });

    it('keeps the old version for its readers, on whatever node it is replaced', async (t) => {
      const { one, other } = await open(t);
      await store(one, { a: 'old', b: 'old' });
      const snapshot = await one.open();
      await store(other, { a: 'new' });
      for (const file of snapshot.files) {
        assert.equal((await readFile(snapshot, file)).toString(), 'old');
      }
      await snapshot.release();
      await snapshot.release();
      assert.deepEqual(await readAll(one), [
        ['a', 'new'],
        ['b', 'old'],
      ]);
    });

    it('gives one file by its name, as it is then, and none by another', async (t) => {
      const { one, other } = await open(t);
      const names = ['a', 'A', '__proto__', 'ä\0'];
      await store(one, Object.fromEntries(names.map((name) => [name, `${name} 1`])));
      for (const name of names) assert.deepEqual(await readOne(other, name), `${name} 1`);
      await store(one, { A: 'two' });
      assert.equal(await readOne(other, 'A'), 'two');
      for (const name of ['b', '', 'a%', 'toString']) {
        const snapshot = await other.open(name);
        assert.deepEqual(snapshot.files, []);
        await snapshot.release();
      }
    });

    it('reads any range of a file', async (t) => {
      const { one } = await open(t);
      const content = Array.from({ length: 40_000 }, (_, at) => at).join(' ');
      await store(one, { a: content });
      const snapshot = await one.open('a');
      const [file] = snapshot.files;
      assert.ok(file !== undefined);
      const place = fc.nat({ max: content.length });
      await fc.assert(
        fc.asyncProperty(place, place, async (from, to) => {
          const [start, end] = [Math.min(from, to), Math.max(from, to)];
          const found = await readFile(snapshot, file, { start, end });
          assert.equal(found.toString(), content.slice(start, end));
        }),
        { numRuns: cases(100) },
      );
      await snapshot.release();
    });

    it('removes a file for all nodes, and keeps it for its readers', async (t) => {
      const { one, other } = await open(t, { filesMax: 2 });
      await store(one, { a: 'first', b: '2' });
      const snapshot = await other.open('a');
      const [file] = snapshot.files;
      assert.ok(file !== undefined);
      await one.remove(file);
      await other.remove(file);
      for (const each of [one, other]) assert.deepEqual(await readAll(each), [['b', '2']]);
      await store(other, { a: 'second' });
      await one.remove(file);
      assert.equal((await readFile(snapshot, file)).toString(), 'first');
      await snapshot.release();
      assert.deepEqual(await readAll(one), [
        ['b', '2'],
        ['a', 'second'],
      ]);
    });

    it('removes and replaces at once, without a mix or a file that is lost', async (t) => {
      const { one, other } = await open(t);
      await store(one, { a: '0', b: 'stays' });
      const names = ['a', 'c'];
      await Promise.all(
        Array.from({ length: 30 }, async (_, at) => {
          const [node, rival] = at % 2 ? [one, other] : [other, one];
          const name = names[at % 3 ? 0 : 1] ?? '';
          await store(node, { [name]: `${at}` });
          const snapshot = await rival.open(name);
          await Promise.all(snapshot.files.map((file) => rival.remove(file)));
          await snapshot.release();
        }),
      );
      const left = await readAll(other);
      assert.deepEqual(await readAll(one), left);
      assert.deepEqual(
        left.filter(([name]) => name !== 'a' && name !== 'c'),
        [['b', 'stays']],
      );
    });

    it('keeps filesMax files over all nodes, and replaces beyond', async (t) => {
      const { one, other } = await open(t, { filesMax: 2 });
      await store(one, { a: '1', b: '1' });
      await assert.rejects(store(other, { a: '2', c: '2' }), withCode('storage_full'));
      await store(other, { a: '3', b: '3' });
      assert.deepEqual(await readAll(one), [
        ['a', '3'],
        ['b', '3'],
      ]);
    });

    it('keeps bytesMax bytes over all nodes, and replaces within', async (t) => {
      const { one, other } = await open(t, { bytesMax: 10 });
      await assert.rejects(store(one, { a: '12345678901' }), withCode('storage_full'));
      await store(one, { a: '12345', b: '67890' });
      for (const more of [{ c: '1' }, { a: '123456' }, { a: '1234567', b: '1234' }]) {
        await assert.rejects(store(other, more), withCode('storage_full'));
      }
      await store(other, { a: '123456789', b: '', c: '0' });
      await assert.rejects(store(one, { d: '1' }), withCode('storage_full'));
      const [file] = (await one.open('a')).files;
      await other.remove(file ?? assert.fail());
      await store(one, { d: '123456789', e: '' });
      const expected = Object.entries({ b: '', c: '0', d: '123456789', e: '' });
      for (const each of [one, other]) assert.deepEqual(await readAll(each), expected);
    });

    it('keeps no more bytes where all come at once', async (t) => {
      const { one, other } = await open(t, { bytesMax: 50 });
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, (_, at) =>
          store(at % 2 ? one : other, { [`${at}`]: '1234567' }),
        ),
      );
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 7);
      assert.equal((await readAll(one)).length, 7);
    });

    it('keeps no more where all come at once', async (t) => {
      const { one, other } = await open(t, { filesMax: 7 });
      const names = Array.from({ length: 40 }, (_, at) => `file ${at}`);
      const ready = await Promise.all(
        names.map(async (name, at) => {
          const upload = (at % 2 ? one : other).begin();
          return { upload, file: await upload.write(name, bytes(name)) };
        }),
      );
      const outcomes = await Promise.allSettled(
        ready.map(({ upload, file }) => upload.commit([file])),
      );
      for (const { upload } of ready) await upload.close();
      const stored = names.filter((_, at) => outcomes[at]?.status === 'fulfilled');
      assert.equal(stored.length, 7);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') assert.ok(withCode('storage_full')(outcome.reason));
      }
      const found = await readAll(other);
      assert.deepEqual(found.map(([name]) => name).toSorted(), stored.toSorted());
      assert.deepEqual(await readAll(one), found);
    });

    it('keeps any name, and never uses one as a path', async (t) => {
      const { one, other } = await open(t, { filesMax: 10_000 });
      const special = fc.constantFrom('../../evil', '/etc/evil', '__proto__', 'a\0b', '␚0000', '');
      const name = fc.oneof(fc.string({ unit: anyCodeUnit, maxLength: 20 }), special);
      const expected = new Map<string, string>();
      await fc.assert(
        fc.asyncProperty(name, fc.string({ maxLength: 5 }), async (storedName, content) => {
          const upload = one.begin();
          await upload.commit([await upload.write(storedName, bytes(content))]);
          await upload.close();
          expected.set(storedName, Buffer.from(content).toString());
        }),
        { numRuns: cases(100) },
      );
      assert.deepEqual(await readAll(other), [...expected]);
    });

    it('gives each of many readers one of the versions, whole, while two upload', async (t) => {
      const { one, other } = await open(t, { nodes: 3 });
      const versions = ['1', '2'].map((digit) => digit.repeat(300_000));
      const hashes = new Set(versions.map(hash));
      await store(one, { a: versions[0] ?? '' });
      const state = { writing: true };
      const writers = [one, other].map(async (node, at) => {
        for (let turn = 0; turn < 12; turn += 1) await store(node, { a: versions[at] ?? '' });
      });
      const readers = Array.from({ length: 6 }, async () => {
        let reads = 0;
        while (state.writing || reads === 0) {
          const [[, content] = ['', '']] = await readAll(other);
          assert.ok(hashes.has(hash(content)));
          reads += 1;
        }
      });
      await Promise.all(writers);
      state.writing = false;
      await Promise.all(readers);
    });

    it('refuses what comes after its end', async (t) => {
      const { one } = await open(t);
      await one.close();
      await assert.rejects(store(one, { a: '2' }), withCode('draining'));
      await assert.rejects(async () => one.open('a'), withCode('draining'));
    });
  });
}

async function readOne(uploads: Uploads, name: string): Promise<string> {
  const snapshot = await uploads.open(name);
  const [file] = snapshot.files;
  assert.ok(file !== undefined && file.storedName === name);
  const content = await readFile(snapshot, file);
  await snapshot.release();
  return content.toString();
}

function hash(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Names of files on disk in the folder that outlives a run. */
export async function listDurable(directory: string): Promise<string[]> {
  return (await readdir(join(directory, 'inkwell-files'))).filter((name) => name !== 'id');
}
