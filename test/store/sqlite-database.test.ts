/** How a SQLite file is written: for the disk, all or nothing, and beside other processes. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { Changes } from '../../dist/store/changes.js';
import { openDatabase, prepareDatabase, type Database } from '../../dist/store/sqlite/database.js';
import { createRows } from '../../dist/store/sqlite/statements.js';
import { Transactions } from '../../dist/store/sqlite/transactions.js';
import { startNode } from '../support/program.ts';
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

it('a statement that uses a parameter twice, or out of order, is refused', only, async (t) => {
  const database = await openDatabase(await newSqliteFile(t), true);
  const { prepare } = createRows(database, new Changes());
  assert.deepEqual({ ...prepare('SELECT $1 AS a, $2 AS b').get(1, 2) }, { a: 1, b: 2 });
  for (const text of ['SELECT $1, $1', 'SELECT $2, $1', 'SELECT $2']) {
    assert.throws(() => prepare(text), /not in order: SELECT/);
  }
  database.close();
});

const diskFaults: ReadonlyArray<readonly [errcode: number, code: string, isLogged: boolean]> = [
  [13, 'storage_full', false],
  [778, 'storage_full', true],
  [4_874, 'storage_full', true],
  [266, 'unavailable', true],
];
for (const [errcode, code, isLogged] of diskFaults) {
  it(`a write whose commit fails with ${errcode} is refused as ${code}`, async () => {
    const fault = Object.assign(new Error('fault'), { errcode });
    const prepare: Database['prepare'] = (text) => ({
      run: () => {
        if (text === 'COMMIT') throw fault;
        return { changes: 0, lastInsertRowid: 0 };
      },
      get: () => ({ data_version: 1 }),
      all: () => [],
      iterate: () => [],
    });
    const logged: unknown[] = [];
    const transactions = new Transactions({
      database: { prepare, exec: () => undefined, close: () => undefined, isOpen: true },
      changes: new Changes(),
      run: (work) => work(),
      log: (_level, _event, fields) => void logged.push(fields),
      checkFile: () => undefined,
    });
    assert.equal(await transactions.write(() => 'stored').catch(codeOf), code);
    assert.deepEqual(logged, isLogged ? [{ reason: 'fault' }] : []);
  });
}

it('a file that may not grow takes no writes, which is said, and is read', only, async (t) => {
  const STORE_URL = toSqliteUrl(await newSqliteFile(t));
  const node = await startNode(t, { STORE_URL });
  const limit = (bytes: string): void => {
    execFileSync('prlimit', ['--pid', `${node.pid}`, `--fsize=${bytes}:`]);
  };
  const create = async (): Promise<number> => {
    const headers = { 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ title: 'a' }) };
    return (await fetch(`${node.url}/api/todos`, init)).status;
  };
  limit('1');
  assert.equal(await create(), 507);
  assert.equal((await fetch(`${node.url}/posts`)).status, 200);
  const line = node.logged.find(({ event }) => event === 'the disk of the store failed');
  assert.match(String(line?.['reason']), /disk I\/O error/);
  limit('unlimited');
  assert.equal(await create(), 201);
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
