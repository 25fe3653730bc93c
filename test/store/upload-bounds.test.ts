/** Bounds and waits of stored files and of pages that are constants, each crossed by a literal. */

import assert from 'node:assert/strict';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createRunIndex } from '../../dist/store/file-index.js';
import { openUploads as open } from '../../dist/store/files/open.js';
import { createMemoryRequests } from '../../dist/store/memory-requests.js';
import { createMemoryStore } from '../../dist/store/memory.js';
import { driverOptions } from '../support/driver-options.ts';
import { times } from '../support/lists.ts';
import { skipSqlite } from '../support/sqlite.ts';
import { inSqliteFile, openOn } from '../support/stores.ts';
import { bytes, createDirectory, openUploads } from '../support/uploads.ts';
import { newOnce } from './contract-requests.ts';

const limits = { filesMax: 100, bytesMax: 1_000_000 };

/** Uploads whose index outlives the process; `known`: the id of the folder of its database. */
async function openDurable(t: TestContext, directory: string, known?: string) {
  const requests = createMemoryRequests();
  let id = known;
  const folderId = (claimed?: string): string | undefined => (id ??= claimed);
  const index = { ...createRunIndex(limits, requests.run), folderId };
  const [log, createName] = [() => undefined, () => 'name'];
  const options = { ...limits, directory, requests, log, createName, openIndex: () => index };
  const uploads = await open(options);
  t.after(async () => uploads.close());
  return uploads;
}

test('the folder of stored files is for its owner alone, and of one database', async (t) => {
  const directory = await createDirectory(t);
  await openDurable(t, directory);
  const folder = join(directory, 'inkwell-files');
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  await openDurable(t, directory, 'name');
  await writeFile(join(folder, 'id'), 'another');
  await assert.rejects(openDurable(t, directory, 'name'), /is not the folder of this database/);
});

test('files of an upload that was done before are removed', async (t) => {
  const { uploads, list } = await openUploads(t);
  const once = newOnce();
  for (const isRepeated of [false, true]) {
    const upload = uploads.begin();
    const file = await upload.write('a', bytes('content'));
    assert.equal((await upload.commit([file], { once })) !== undefined, isRepeated);
    await upload.close();
    assert.equal((await list()).length, 1);
  }
  await uploads.close();
});

test('a page of a list has 500 records where nobody says how many', async () => {
  const { todos } = createMemoryStore(driverOptions());
  for (const _ of times(501)) await todos.create({ title: 'a', completed: false });
  assert.equal((await todos.all.read()).records.length, 500);
});

test('a page of a database ends after a mebibyte', { skip: skipSqlite }, async (t) => {
  const { posts } = await openOn(t, await inSqliteFile.newUrl(t));
  const content = 'x'.repeat(300_000);
  for (const _ of times(8)) await posts.create({ title: 'a', content, authorId: null });
  assert.equal((await posts.all.read()).records.length, 4);
});
