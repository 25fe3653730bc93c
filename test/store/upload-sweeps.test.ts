/** A sweep that is asked for while another is under way is a round of its own, after that one. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../dist/errors.js';
import type { FileIndex } from '../../dist/store/file-index.js';
import { withCode } from '../support/errors.js';
import { createDirectory, store } from '../support/uploads.js';
import { openDurable } from './durable-suite.js';
import { listDurable } from './uploads-suite.js';

const away = (): Promise<never> => Promise.reject(new AppError('overloaded', 'Away.'));

/** An index of a database that is away for every commit, so that all uploads stay in doubt. */
const doubtful: FileIndex = {
  list: () => ({ files: [], change: 0 }),
  commit: away,
  abandon: (names) => names,
  removable: () => [],
  remove: () => undefined,
  forget: () => undefined,
  replaced: () => [],
};

test('also after one that fails, and for what it began too early to see', async (t) => {
  const directory = await createDirectory(t);
  let begun = (): void => undefined;
  const hasBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  let fail = (_error: AppError): void => undefined;
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  let rounds = 0;
  const index: FileIndex = {
    ...doubtful,
    abandon(names) {
      rounds += 1;
      if (rounds > 1) return names;
      begun();
      return failed;
    },
  };
  const records = { openFileIndex: () => index };
  const { uploads } = await openDurable(records, t, { directory });
  await assert.rejects(store(uploads, { a: '1' }), withCode('overloaded'));
  const first = uploads.sweep();
  await hasBegun;
  await assert.rejects(store(uploads, { b: '2' }), withCode('overloaded'));
  const others = [uploads.sweep(), uploads.sweep()];
  fail(new AppError('overloaded', 'The connection was cut.'));
  await first;
  await Promise.all(others);
  assert.equal(rounds, 2);
  assert.deepEqual(await listDurable(directory), []);
});
