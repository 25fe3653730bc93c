/** Room for what waits: who gets how much of it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { MemoryPool } from '../dist/memory-pool.js';

test('one holder gets three quarters of what is free, and what it gives back is free again', () => {
  const pool = new MemoryPool(1_000);
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

test('who asks whether there is room reserves nothing', () => {
  const pool = new MemoryPool(1_000);
  pool.open().set(500);
  const asking = pool.open();
  assert.equal(asking.hasRoom(376), false);
  assert.equal(asking.hasRoom(375), true);
  assert.deepEqual([asking.bytes, pool.bytes, pool.isShort], [0, 500, false]);
  asking.set(1);
  assert.equal(pool.isShort, true);
});

test('any history of holders leaves the sum of what they hold, within the bound where it can be kept', () => {
  const step = fc.record({
    holder: fc.nat(4),
    act: fc.constantFrom('grow', 'release'),
    bytes: fc.nat(600),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const pool = new MemoryPool(1_000);
      const holders = Array.from({ length: 5 }, () => pool.open());
      for (const { holder, act, bytes } of steps) {
        if (act === 'grow') holders[holder]?.grow(bytes);
        if (act === 'release') holders[holder]?.release();
        const sum = holders.reduce((total, held) => total + held.bytes, 0);
        assert.equal(pool.bytes, sum);
        assert.ok(sum <= 1_000);
      }
    }),
  );
});
