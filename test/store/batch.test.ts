import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { createLoader, individually } from '../../dist/store/postgres/batch.js';
import { lost } from '../../dist/store/postgres/client/faults.js';
import { toInserts } from '../../dist/store/postgres/inserts.js';
import type { Insertion } from '../../dist/store/postgres/requests.js';
import { gate } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';

test('a thousand groups of items wait, the items of one more are refused', async () => {
  const opened = gate();
  const ask = createLoader<string, string>({
    costMax: 1,
    costOf: () => 1,
    async loadMany(items) {
      await opened.opened;
      return items;
    },
    loadOne: (item) => Promise.resolve(item),
  });
  const all = times(1_002).map((at) => ask(`${at}`));
  const more = ask('more').then(() => 'taken', codeOf);
  assert.equal(await Promise.race([more, pause(1_000, 'waits')]), 'overloaded');
  opened.open();
  assert.equal((await Promise.all(all)).length, 1_002);
});

test('inserts of which it is not known whether they were stored are not done again', async () => {
  const rows = [{ row: { id: 'a' } }, { row: { id: 'b' } }] as unknown as readonly Insertion[];
  const failing = (error: Error) => {
    const insert = async (): Promise<never> => {
      throw error;
    };
    return toInserts(insert).loadMany(rows, 0);
  };
  await assert.rejects(failing(lost()), { code: 'unavailable' });
  assert.deepEqual(await failing(new Error('refused')), [individually, individually]);
});
