/** Room for what waits: who gets how much of it, and who gives it up. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createMemoryPool } from '../dist/memory-pool.js';

test('one holder gets three quarters of what is free, and what it gives back is free again', () => {
  const pool = createMemoryPool(1_000);
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

test('who asks whether there is room holds nothing, and others give up theirs for it', () => {
  let now = 0;
  const pool = createMemoryPool(1_000, () => now);
  const waiting = pool.open(() => undefined);
  waiting.set(500);
  const asking = pool.open();
  assert.equal(asking.hasRoom(376), false);
  assert.equal(asking.hasRoom(375), true);
  assert.deepEqual([asking.bytes, waiting.bytes], [0, 500]);
  now = 5_000;
  assert.equal(asking.hasRoom(751), false);
  assert.equal(waiting.bytes, 0);
  assert.equal(asking.hasRoom(750), true);
  assert.equal(pool.bytes, 0);
});

test('who waits longest for its client gives up first, after its time, and no more than needed', () => {
  let now = 0;
  const pool = createMemoryPool(1_000, () => now);
  const ended: string[] = [];
  const hold = (name: string, bytes: number): void => {
    pool.open(() => void ended.push(name)).set(bytes);
  };
  hold('first', 400);
  now = 1_000;
  hold('second', 300);
  hold('third', 300);
  const asking = pool.open();
  now = 4_999;
  assert.equal(asking.grow(100), false);
  assert.deepEqual(ended, []);
  now = 5_000;
  assert.ok(asking.grow(100));
  assert.deepEqual(ended, ['first']);
  assert.equal(asking.grow(250), false);
  assert.deepEqual(ended, ['first']);
  now = 6_000;
  assert.ok(asking.grow(250));
  assert.deepEqual(ended, ['first', 'second']);
});

test('who holds nothing any more, or began again, is not asked for what it had', () => {
  let now = 0;
  const pool = createMemoryPool(1_000, () => now);
  const ended: string[] = [];
  const gone = pool.open(() => void ended.push('gone'));
  gone.set(500);
  const back = pool.open(() => void ended.push('back'));
  back.set(500);
  gone.release();
  back.set(0);
  now = 6_000;
  back.set(800);
  assert.equal(pool.open().grow(200), false);
  assert.deepEqual(ended, []);
});

test('any history of holders leaves the sum of what they hold, within the bound where it can be kept', () => {
  const step = fc.record({
    holder: fc.nat(4),
    act: fc.constantFrom('grow', 'release', 'wait'),
    bytes: fc.nat(600),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      let now = 0;
      const pool = createMemoryPool(1_000, () => now);
      const holders = Array.from({ length: 5 }, (_, index) =>
        pool.open(index < 3 ? () => undefined : undefined),
      );
      for (const { holder, act, bytes } of steps) {
        if (act === 'grow') holders[holder]?.grow(bytes);
        if (act === 'release') holders[holder]?.release();
        if (act === 'wait') now += bytes * 10;
        const sum = holders.reduce((total, held) => total + held.bytes, 0);
        assert.equal(pool.bytes, sum);
        assert.ok(sum <= 1_000);
      }
    }),
  );
});
