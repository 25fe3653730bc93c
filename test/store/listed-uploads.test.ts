/** Pages of stored files, and names that are stored only once (R45), whatever keeps the index. */

import { AppError } from '../../dist/errors.js';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Uploads } from '../../dist/store/files/uploads.js';
import { isRepeated, type Once } from '../../dist/store/once.js';
import { withCode } from '../support/errors.ts';
import { pluck, times } from '../support/lists.ts';
import { bytes, readAll, store } from '../support/uploads.ts';
import { uploadPlaces } from './upload-places.ts';

for (const { name, skip, open } of uploadPlaces) {
  describe(`the list of uploads ${name}`, { skip }, () => {
    it('lists in pages by places, which outlive their files', async (t) => {
      const { one, other } = await open(t);
      await store(one, { a: '', b: '', c: '', d: '' });
      const first = await other.readPage(0, 2);
      assert.deepEqual(pluck(first.records, 'storedName'), ['a', 'b']);
      await one.remove(first.records[1] ?? assert.fail());
      await store(other, { e: '', b: '', c: 'replaced' });
      const names = [];
      for (let page = await first.next?.(); page !== undefined; page = await page.next?.())
        names.push(pluck(page.records, 'storedName'));
      assert.deepEqual(names, [
        ['c', 'd'],
        ['e', 'b'],
      ]);
    });

    it('says of a repetition under a key that it was done, not that its names are stored', async (t) => {
      const { one, other, list } = await open(t);
      const once = { key: 'k'.repeat(22), fingerprint: 'p'.repeat(22) };
      const send = async (node: Uploads, text: string, by?: Once) => {
        const upload = node.begin();
        const files = [await upload.write('a', bytes(text))];
        const options = { check: onlyNew, once: by };
        try {
          return await upload.commit(files, options);
        } finally {
          await upload.close();
        }
      };
      const both = await Promise.all([send(one, '1', once), send(other, '2', once)]);
      assert.equal(both.filter((done) => done?.isRepeated).length, 1);
      assert.equal((await send(other, '3', once))?.isRepeated, true);
      // What a repetition has written is gone.
      assert.equal((await list()).length, 1);
      const reused = { ...once, fingerprint: 'q'.repeat(22) };
      await assert.rejects(send(one, '3', reused), withCode('idempotency_key_reused'));
      const [[, first] = ['', '']] = await readAll(one);
      assert.equal(first, both[0] === undefined ? '1' : '2');
      await assert.rejects(send(one, '4'), withCode('precondition_failed'));
      const unused = { ...once, key: 'u'.repeat(22) };
      await assert.rejects(send(one, '5', unused), withCode('precondition_failed'));
      const [file = assert.fail()] = await one.list('a');
      const removal = { ...once, key: 'r'.repeat(22) };
      assert.equal(await one.remove(file, removal), true);
      assert.ok(isRepeated(await other.remove(file, removal)));
      assert.equal(await one.remove(file, unused), false);
      assert.equal(await send(one, '6', unused), undefined);
    });

    it('stores only new names where that is asked, once over all nodes', async (t) => {
      const { one, other, list } = await open(t);
      const ready = await Promise.all(
        times(8).map(async (at) => {
          const upload = (at % 2 ? one : other).begin();
          const files = [
            await upload.write('a', bytes(`${at}`)),
            await upload.write(`${at}`, bytes()),
          ];
          return { upload, files };
        }),
      );
      const commits = ready.map(({ upload, files }) => upload.commit(files, { check: onlyNew }));
      const outcomes = await Promise.allSettled(commits);
      for (const { upload } of ready) await upload.close();
      const won = outcomes.findIndex(({ status }) => status === 'fulfilled');
      for (const [at, outcome] of outcomes.entries()) {
        if (outcome.status === 'rejected')
          assert.ok(withCode('precondition_failed')(outcome.reason), `round ${at}`);
        else assert.equal(at, won, `round ${at}`);
      }
      const expected = [
        ['a', `${won}`],
        [`${won}`, ''],
      ];
      for (const [at, each] of [one, other].entries())
        assert.deepEqual(await readAll(each), expected, `number ${at}`);
      assert.equal((await list()).length, 2);
    });
  });
}

function onlyNew(replaced: readonly unknown[]): void {
  if (replaced.length > 0) throw new AppError('precondition_failed', 'It is stored already.');
}
