/** Room for what waits: who gets how much of it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ConnectionMemory, MemoryPool } from '../dist/memory-pool.js';

test('one holder gets three quarters of what is free, and what it gives back is free again', () => {
  const pool = new MemoryPool(8_000 / 7);
  const first = pool.open();
  assert.equal(first.grow(751), false);
  assert.equal(pool.bytes, 0);
  assert.ok(first.grow(450) && first.grow(300));
  assert.equal(first.grow(1), false);
  const second = pool.open();
  assert.equal(second.grow(188), false);
  assert.ok(second.grow(187));
  assert.equal(pool.bytes, 937);
  first.release();
  assert.ok(second.grow(250));
  second.release();
  second.release();
  assert.equal(pool.bytes, 0);
});

test('what has no end in sight has an eighth, a connection a 64th, and takes nothing from others', () => {
  const pool = new MemoryPool(64_000_000);
  const memories = Array.from({ length: 10 }, () => new ConnectionMemory(pool));
  const [first, second] = memories.map((memory) => memory.openLasting());
  // The first 16 KiB are part of the connection.
  assert.equal(first?.grow(16_384 + 1_000_001), false);
  assert.ok(first?.grow(16_384 + 1_000_000));
  assert.equal(memories[0]?.openLasting().grow(1), false);
  assert.deepEqual([pool.bytes, memories[0]?.bytes], [1_000_000, 1_016_384]);
  assert.equal(pool.lastingBytes, 1_000_000);
  assert.ok(second?.grow(500_000));
  const taken = memories.slice(2).filter((memory) => memory.openLasting().grow(1_016_384));
  assert.equal(taken.length, 6);
  assert.equal(pool.lastingBytes, 7_483_616);
  // With the second purse full, a connection still has its own part, and the first purse is whole.
  assert.ok(memories.at(-1)?.openLasting().grow(16_384));
  assert.equal(pool.isOver, false);
  assert.ok(pool.open().grow(42_000_000));
  first?.release();
  assert.deepEqual([memories[0]?.bytes, pool.lastingBytes], [0, 6_483_616]);
});

test('of a small pool a connection may have half a mebibyte without an end in sight', () => {
  const reservation = new ConnectionMemory(new MemoryPool(20_000_000)).openLasting();
  assert.equal(reservation.grow(16_384 + 524_289), false);
  assert.ok(reservation.grow(16_384 + 524_288));
  // Of an even smaller one a 32nd.
  const small = new ConnectionMemory(new MemoryPool(1_048_576)).openLasting();
  assert.equal(small.grow(16_384 + 32_769), false);
  assert.ok(small.grow(16_384 + 32_768));
});

test('a connection holds what it opens, and what is handed to it', () => {
  const pool = new MemoryPool(10_000);
  const memory = new ConnectionMemory(pool);
  const reservation = pool.open();
  reservation.set(100);
  reservation.holdFor(memory);
  assert.ok(memory.open().grow(50));
  assert.equal(memory.bytes, 150);
  reservation.release();
  assert.deepEqual([memory.bytes, pool.bytes], [50, 50]);
});

test('any history of holders leaves the sum of what they hold, within the bound where it can be kept', () => {
  const acts = fc.constantFrom('grow', 'release');
  const step = fc.record({ holder: fc.nat(4), act: acts, bytes: fc.nat(600) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const pool = new MemoryPool(8_000 / 7);
      const holders = Array.from({ length: 5 }, () => pool.open());
      for (const { holder, act, bytes } of steps) {
        if (act === 'grow') holders[holder]?.grow(bytes);
        if (act === 'release') holders[holder]?.release();
        const sum = holders.reduce((total, held) => total + held.bytes, 0);
        assert.equal(pool.bytes, sum, `${holder}`);
        assert.ok(sum <= 1_000, `${holder}`);
      }
    }),
  );
});
