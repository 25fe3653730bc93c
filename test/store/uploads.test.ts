/** What every store of uploads has to prove, whatever keeps its index. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { withCode } from '../support/errors.ts';
import { faults } from '../support/faults.ts';
import { times } from '../support/lists.ts';
import { cases } from '../support/long.ts';
import { anyCodeUnit } from '../support/texts.ts';
import { bytes, patiently, readAll, readFile, store } from '../support/uploads.ts';
import { uploadPlaces } from './upload-places.ts';

for (const { name: where, skip, open } of uploadPlaces) {
  describe(`the store of uploads ${where}`, { skip }, () => {
    it('gives files back in the order in which they came; a replaced one keeps its place', async (t) => {
      const { one, other } = await open(t);
      await store(one, { b: '1', a: '2', c: '' });
      await store(other, { a: 'two' });
      await store(one, { d: '4', b: 'one' });
      const expected = Object.entries({ b: 'one', a: 'two', c: '', d: '4' });
      for (const [at, each] of [one, other].entries())
        assert.deepEqual(await readAll(each), expected, `number ${at}`);
    });

    it('shows the files of a request together, and none that is not committed', async (t) => {
      const { one, other, list } = await open(t);
      const upload = one.begin();
      const first = await upload.write('one', bytes('1'));
      await upload.write('two', bytes('2'));
      assert.deepEqual(await readAll(other), []);
      await upload.commit([first]);
      await upload.close();
      assert.deepEqual(await readAll(other), [['one', '1']]);
      assert.equal((await list()).length, 1);
    });

    it('keeps the old version for who has listed it, on whatever node', async (t) => {
      const { one, other } = await open(t);
      await store(one, { a: 'old', b: 'old' });
      const end = one.keepReplaced();
      const files = await one.list();
      await store(other, { a: 'new' });
      for (const file of files)
        assert.equal((await readFile(one, file)).toString(), 'old', JSON.stringify(file));
      assert.deepEqual(await readAll(one), Object.entries({ a: 'new', b: 'old' }));
      end();
    });

    it('removes a file for all nodes, and keeps it for its readers', async (t) => {
      const { one, other } = await open(t, { filesMax: 2 });
      await store(one, { a: 'first', b: '2' });
      const end = other.keepReplaced();
      const [file] = await other.list('a');
      assert.ok(file !== undefined);
      await one.remove(file);
      await other.remove(file);
      for (const [at, each] of [one, other].entries())
        assert.deepEqual(await readAll(each), [['b', '2']], `number ${at}`);
      await store(other, { a: 'second' });
      await one.remove(file);
      assert.equal((await readFile(other, file)).toString(), 'first');
      assert.deepEqual(await readAll(one), Object.entries({ b: '2', a: 'second' }));
      end();
    });

    it('keeps bytesMax bytes over all nodes, and replaces within', async (t) => {
      const { one, other } = await open(t, { bytesMax: 10 });
      await assert.rejects(store(one, { a: '12345678901' }), withCode('storage_full'));
      await store(one, { a: '12345', b: '67890' });
      for (const more of [{ c: '1' }, { a: '123456' }, { a: '1234567', b: '1234' }])
        await assert.rejects(store(other, more), withCode('storage_full'), JSON.stringify(more));
      await store(other, { a: '123456789', b: '', c: '0' });
      await assert.rejects(store(one, { d: '1' }), withCode('storage_full'));
      const [file] = await one.list('a');
      await other.remove(file ?? assert.fail());
      await store(one, { d: '123456789', e: '' });
      const expected = Object.entries({ b: '', c: '0', d: '123456789', e: '' });
      for (const [at, each] of [one, other].entries())
        assert.deepEqual(await readAll(each), expected, `number ${at}`);
    });

    for (const bounds of [{ filesMax: 7 }, { bytesMax: 7 * 7 }]) {
      it(`keeps no more than ${Object.entries(bounds).join()} where all come at once`, async (t) => {
        const { one, other } = await open(t, bounds);
        const names = times(40).map((at) => `file ${10 + at}`);
        const ready = await Promise.all(
          names.map(async (name, at) => {
            const upload = (at % 2 ? one : other).begin();
            return { upload, file: await upload.write(name, bytes(name)) };
          }),
        );
        const commits = ready.map(({ upload, file }) => patiently(() => upload.commit([file])));
        const outcomes = await Promise.allSettled(commits);
        for (const { upload } of ready) await upload.close();
        const stored = names.filter((_, at) => outcomes[at]?.status === 'fulfilled');
        assert.equal(stored.length, 7);
        for (const [at, outcome] of outcomes.entries()) {
          if (outcome.status === 'rejected')
            assert.ok(withCode('storage_full')(outcome.reason), `outcome ${at}`);
        }
        const found = await readAll(other);
        assert.deepEqual(found.map(([name]) => name).toSorted(), stored);
        assert.deepEqual(await readAll(one), found);
      });
    }

    it('keeps any name, and never uses one as a path', async (t) => {
      const { one, other, directory, list } = await open(t, { filesMax: 10_000 });
      const special = fc.constantFrom('../../evil', '/etc/evil', '__proto__', 'a\0b', '␚0000', '');
      const name = fc.oneof(fc.string({ unit: anyCodeUnit, maxLength: 20 }), special);
      const expected = new Map<string, string>();
      const content = fc.string({ maxLength: 5 });
      const property = fc.asyncProperty(name, content, async (storedName, text) => {
        await store(one, { [storedName]: text });
        expected.set(storedName, text);
      });
      await fc.assert(property, { numRuns: cases(100) });
      assert.deepEqual(await readAll(other), [...expected]);
      assert.equal((await readdir(directory)).length, 1);
      for (const onDisk of await list()) assert.match(onDisk, /^[\w-]+\.upload$/, onDisk);
    });

    it('gives each of many readers one of the versions, whole, while two upload', async (t) => {
      const { one, other } = await open(t, { nodes: 3 });
      const versions = ['1', '2'].map((digit) => digit.repeat(300_000));
      const hashes = new Set(versions.map(hash));
      await store(one, { a: versions[0] ?? '' });
      const state = { writing: true };
      const writers = [one, other].map(async (node, at) => {
        for (let round = 0; round < 12; round += 1)
          await patiently(() => store(node, { a: versions[at] ?? '' }));
      });
      const readers = times(6).map(async () => {
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

    it('writes what a full disk takes only in pieces', async (t) => {
      const { one } = await open(t);
      faults.writeBytesMax = 3;
      const upload = one.begin();
      await upload.commit([await upload.write('a', bytes('0123456', '7', '89abcdef'))]);
      await upload.close();
      faults.writeBytesMax = Infinity;
      assert.deepEqual(await readAll(one), [['a', '0123456789abcdef']]);
    });

    it('fails with the error of the content, and leaves nothing', async (t) => {
      const { one, list } = await open(t);
      const failure = new Error('cut');
      const upload = one.begin();
      async function* content(): AsyncGenerator<readonly Buffer[], void, undefined> {
        yield [Buffer.from('half')];
        await Promise.reject(failure);
      }
      await assert.rejects(upload.write('a', content()), failure);
      await upload.close();
      assert.deepEqual(await list(), []);
    });
  });
}

function hash(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}
