/** How long tasks share the event loop, at times that the test sets. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createScheduler } from '../dist/scheduler.js';

/** A scheduler, and tasks that each take some milliseconds in a turn of their own choice. */
function open(t: TestContext) {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const scheduler = createScheduler();
  /** The turn of each task, in the order in which they ran. */
  const turns: number[] = [];
  const run = async (milliseconds: number, wait = scheduler.turn()): Promise<void> => {
    await wait;
    turns.push(scheduler.turns);
    now += milliseconds;
  };
  return { scheduler, turns, run };
}

test('tasks that wait continue in one turn until they have used five milliseconds', async (t) => {
  const { turns, run } = open(t);
  await run(5);
  await Promise.all([run(2), run(2), run(1), run(9), run(1)]);
  assert.deepEqual(turns, [1, 2, 2, 2, 3, 4]);
});

test('one who yields continues in each later turn, behind those who waited', async (t) => {
  const { scheduler, turns, run } = open(t);
  await run(5);
  const twice = (): Promise<void> => run(1).then(() => run(1, scheduler.yield()));
  await Promise.all([twice(), twice(), run(1)]);
  assert.deepEqual(turns, [1, 2, 2, 2, 3, 4]);
});

test('nobody starts before those who wait', async (t) => {
  const { turns, run } = open(t);
  await run(5);
  const waiting = run(1);
  const late = run(1);
  assert.deepEqual(turns, [1]);
  await Promise.all([waiting, late]);
  assert.deepEqual(turns, [1, 2, 2]);
});
