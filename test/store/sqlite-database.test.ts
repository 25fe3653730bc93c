/** How a SQLite file is written: for the disk, all or nothing, and beside other processes. */

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { Changes } from '../../dist/store/changes.js';
import { openDatabase, prepareDatabase, type Database } from '../../dist/store/sqlite/database.js';
import { Transactions } from '../../dist/store/sqlite/transactions.js';
import { newSqliteFile, openInSqlite, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';
import { openOn } from '../support/stores.ts';

const only = { skip: skipSqlite };
const todo = { title: 'a', completed: false };

it('each commit waits for the disk', only, async (t) => {
  const database = await openDatabase(await newSqliteFile(t), true);
  prepareDatabase(database, () => undefined);
  const valueOf = (name: string): unknown => Object.values({ ...database.prepare(name).get() })[0];
  assert.equal(valueOf('PRAGMA synchronous'), 2);
  assert.equal(valueOf('PRAGMA journal_mode'), 'wal');
  assert.equal(valueOf('PRAGMA journal_size_limit'), 16_777_216);
  database.close();
});

it('a write whose commit fails is refused', async () => {
  const full = Object.assign(new Error('full'), { errcode: 13 });
  const prepare: Database['prepare'] = (text) => ({
    run: () => {
      if (text === 'COMMIT') throw full;
      return { changes: 0, lastInsertRowid: 0 };
    },
    get: () => ({ data_version: 1 }),
    all: () => [],
    iterate: () => [],
  });
  const database = { prepare, exec: () => undefined, close: () => undefined, isOpen: true };
  const transactions = new Transactions({
    database,
    changes: new Changes(),
    run: (work) => work(),
    checkFile: () => undefined,
  });
  const written = transactions.write(() => 'stored');
  assert.equal(await written.catch(codeOf), 'storage_full');
});

/** A store on a file whose lock another process has. */
async function openLocked(t: TestContext) {
  const path = await newSqliteFile(t);
  const store = await openOn(t, toSqliteUrl(path));
  const other = openInSqlite(path);
  other.exec('BEGIN IMMEDIATE');
  const created = Promise.resolve(store.todos.create(todo)).then(() => 'stored', codeOf);
  return { other, created };
}

it('a write goes on 20 ms after another process has given its lock back', only, async (t) => {
  const { other, created } = await openLocked(t);
  assert.equal(await Promise.race([created, pause(100, 'waits')]), 'waits');
  other.close();
  // Of timers of one process the shorter one is first, however busy it is.
  assert.equal(await Promise.race([created, pause(500, 'waits')]), 'stored');
});
