/** How work shares the event loop, at times that the test sets. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { createScheduler } from '../dist/scheduler.js';

/** A scheduler, and work of some milliseconds. */
function open(t: TestContext) {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const scheduler = createScheduler();
  /** The turn of each work, in the order in which they ran. */
  const turns: number[] = [];
  const run = async (milliseconds: number, value?: unknown): Promise<unknown> =>
    scheduler.run(() => {
      turns.push(scheduler.turns);
      now += milliseconds;
      return value;
    });
  return { scheduler, turns, run };
}

test('work runs at once until a turn has used five milliseconds, the rest in later turns', async (t) => {
  const { turns, run } = open(t);
  const all = [run(2), run(2), run(9), run(2), run(4), run(1), run(1)];
  assert.deepEqual(turns, [1, 1, 1]);
  await Promise.all(all);
  assert.deepEqual(turns, [1, 1, 1, 2, 2, 3, 3]);
});

test('nobody works before those who wait', async (t) => {
  const { turns, run } = open(t);
  await run(5);
  const waiting = run(1);
  const late = run(1);
  assert.deepEqual(turns, [1]);
  await Promise.all([waiting, late]);
  assert.deepEqual(turns, [1, 2, 2]);
});

test('who waits is served in the order in which they came, whoever comes meanwhile', async (t) => {
  const { scheduler, run } = open(t);
  const order: string[] = [];
  const ask = (name: string) => scheduler.run(() => order.push(name));
  await run(5);
  const waiting = ['a', 'b', 'c'].map(ask);
  void scheduler.run(async () => {
    order.push('d');
    await ask('f'); // in the turn of d, which has time left
  });
  await Promise.all([...waiting, ask('e')]);
  assert.equal(order.join(' '), 'a b c d e f');
});

test('a turn begins with the first work after an iteration without any', async (t) => {
  const { turns, run } = open(t);
  await run(5);
  await nextIteration();
  await nextIteration();
  const now = run(1);
  assert.deepEqual(turns, [1, 2]);
  await now;
});

test('values and errors reach who asked, now and later', async (t) => {
  const { scheduler, run } = open(t);
  const fail = (): never => {
    throw new Error('mine');
  };
  assert.equal(
    scheduler.run(() => 1),
    1,
  );
  assert.throws(() => scheduler.run(fail), /mine/);
  void run(5);
  const later = [
    scheduler.run(() => 2),
    scheduler.run(() => Promise.resolve(3)),
    scheduler.run(fail),
    scheduler.run(() => Promise.reject(new Error('late'))),
    scheduler.run(() => 4),
  ];
  const settled = await Promise.allSettled(later.map((one) => Promise.resolve(one)));
  const seen = settled.map((one) =>
    one.status === 'fulfilled' ? one.value : (one.reason as Error).message,
  );
  assert.deepEqual(seen, [2, 3, 'mine', 'late', 4]);
});
