/** What counts as changed, by the snapshots that PostgreSQL names. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cells } from '../../dist/store/sql/rows.js';
import { createVersions } from '../../dist/store/postgres/versions.js';
import { gate } from '../support/http-kit.ts';

/** Versions of a server whose snapshots are given: name of the server, and whether it has triggers. */
function createWatched() {
  let state = { snapshot: '1:1:', server: 'server', trigger: 'f' };
  let asked = 0;
  const versions = createVersions({
    readCells: async ({ text }) => {
      asked += 1;
      const { snapshot, server, trigger } = state;
      return [
        [snapshot, server, text.includes('pg_trigger') ? trigger : undefined] as unknown as Cells,
      ];
    },
  });
  const changes = versions.changes();
  const slots = [changes.slotOf('comments', 'post'), changes.slotOf('comments', 'other')];
  return {
    versions,
    asked: () => asked,
    /** Returns which of `post` and `other` have changed in the next snapshot. */
    async changedIn(snapshot: string, more: Partial<typeof state> = {}) {
      state = { ...state, snapshot, ...more };
      const before = slots.map((slot) => changes.sumOf([slot]));
      await versions.readChanges();
      return ['post', 'other'].filter((_, at) => changes.sumOf([slots[at] ?? 0]) !== before[at]);
    },
    /** A statement of this process has added a comment to `post`. */
    add: async (xid: number) =>
      versions.track(Promise.resolve([{ id: 'a', post_id: 'post', xid: String(xid) }]), 'comments'),
  };
}

const everything = ['post', 'other'];

test('nothing changes between equal snapshots, or by what is running', async () => {
  const { changedIn } = createWatched();
  assert.deepEqual(await changedIn('5:5:'), everything);
  assert.deepEqual(await changedIn('5:5:'), []);
  assert.deepEqual(await changedIn('5:7:5,6'), []);
});

test('transactions of others change everything, in whichever order they end', async () => {
  const { changedIn } = createWatched();
  await changedIn('5:7:5,6');
  assert.deepEqual(await changedIn('5:7:5'), everything);
  assert.deepEqual(await changedIn('7:7:'), everything);
  assert.deepEqual(await changedIn('8:8:'), everything);
});

test('transactions of this process change what they return', async () => {
  const { changedIn, add, versions } = createWatched();
  await changedIn('5:5:');
  await add(5);
  const [slot, sum] = [versions.changes().slotOf('comments', 'post'), versions.changes()];
  assert.equal(sum.at(slot), 1);
  assert.deepEqual(await changedIn('6:6:'), []);
  await add(6);
  assert.deepEqual(await changedIn('6:7:6'), []);
  assert.deepEqual(await changedIn('7:7:'), []);
  await add(7);
  assert.deepEqual(await changedIn('9:9:'), everything, 'the transaction 8 was of somebody else');
});

test('a transaction that is seen before its result is waited for', async () => {
  const { changedIn, versions } = createWatched();
  await changedIn('5:5:');
  const arrives = gate();
  const rows = arrives.opened.then(() => [{ id: 'a', post_id: 'post', xid: '5' }]);
  const tracked = versions.track(rows, 'comments');
  const changed = changedIn('6:6:');
  setImmediate(arrives.open);
  await tracked;
  assert.deepEqual(await changed, ['post']);
});

test('of 10,001 transactions of this process the first ones are not known any more', async () => {
  for (const [count, changed] of [
    [10_000, []],
    [10_001, everything],
  ] as const) {
    const { changedIn, add } = createWatched();
    await changedIn('5:5:');
    for (let xid = 5; xid < 5 + count; xid += 1) await add(xid);
    assert.deepEqual(await changedIn(`${5 + count}:${5 + count}:`), changed);
  }
});

test('a statement that does not end holds nothing up for more than 10 ms', async (t) => {
  const { changedIn, versions } = createWatched();
  await changedIn('5:5:');
  const timers = t.mock.method(globalThis, 'setTimeout');
  const arrives = gate();
  const tracked = versions.track(arrives.opened.then(() => []));
  assert.deepEqual(await changedIn('6:6:'), everything);
  assert.deepEqual(
    timers.mock.calls.map(({ arguments: [, milliseconds] }) => milliseconds),
    [10],
  );
  arrives.open();
  await tracked;
});

test('a statement that fails makes no transaction known', async () => {
  const { changedIn, versions } = createWatched();
  await changedIn('5:5:');
  await assert.rejects(versions.track(Promise.reject(new Error('lost')), 'comments'));
  assert.deepEqual(await changedIn('6:6:'), everything);
});

test('while there is a trigger, no transaction is known', async () => {
  const { changedIn, add } = createWatched();
  await changedIn('5:5:');
  await changedIn('5:5:');
  // The transaction 5 creates a trigger.
  assert.deepEqual(await changedIn('6:6:', { trigger: 't' }), everything);
  await add(6);
  assert.deepEqual(await changedIn('7:7:'), everything);
  await add(7);
  assert.deepEqual(await changedIn('8:8:'), everything);
  // The transaction 8 drops the trigger.
  assert.deepEqual(await changedIn('9:9:', { trigger: 'f' }), everything);
  await changedIn('9:9:');
  await add(9);
  assert.deepEqual(await changedIn('10:10:'), []);
});

test('another server knows nothing, also if it counts from a lower number', async () => {
  const { changedIn, add } = createWatched();
  await changedIn('50:50:');
  await add(50);
  await add(6);
  assert.deepEqual(await changedIn('6:6:', { server: 'replica' }), everything);
  assert.deepEqual(await changedIn('7:7:'), everything, 'the transaction 6 was of the lost server');
  await add(7);
  await changedIn('7:7:');
  assert.deepEqual(await changedIn('8:8:'), []);
});

test('a result of another server that arrives late makes nothing known', async () => {
  const { changedIn, versions } = createWatched();
  await changedIn('50:50:');
  const arrives = gate();
  const tracked = versions.track(
    arrives.opened.then(() => [{ id: 'a', post_id: 'post', xid: '6' }]),
    'comments',
  );
  await changedIn('6:6:', { server: 'replica' });
  arrives.open();
  await tracked;
  assert.deepEqual(await changedIn('7:7:'), everything);
});
