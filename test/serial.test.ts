/** A line for work: who goes first, who is refused, and that nobody waits for ever. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSerial } from '../dist/serial.js';
import { times } from './support/lists.ts';
import { gate } from './support/http-kit.ts';

function createFixture(options: Parameters<typeof createSerial>[0] = {}) {
  const clock = { now: 0 };
  const serial = createSerial({ ...options, now: () => clock.now });
  const done: string[] = [];
  const first = gate();
  const blocked = serial.run(() => first.opened);
  const run = (name: string, delay = 0): Promise<unknown> =>
    serial
      .run(() => done.push(name), { delay, owner: name })
      .catch(() => done.push(`${name} refused`));
  const end = async (): Promise<void> => {
    first.open();
    await blocked;
  };
  return { clock, serial, done, run, end };
}

test('work runs alone, in the order in which it came', async () => {
  const { serial, done, run, end } = createFixture();
  const all = ['a', 'b', 'c'].map((name) => run(name));
  await new Promise(setImmediate);
  assert.deepEqual([done, serial.waitingOf('b')], [[], 1]);
  await end();
  await Promise.all(all);
  assert.deepEqual([done, serial.isIdle], [['a', 'b', 'c'], true]);
});

test('urgent work overtakes what may be delayed, but not for longer than that', async () => {
  const { clock, done, run, end } = createFixture();
  const all = [run('late', 2_000), run('later', 3_000)];
  for (const second of times(4)) {
    clock.now = second * 1_000 - 1; // the last comes at 2,999
    all.push(run(`urgent ${second}`));
  }
  await end();
  await Promise.all(all);
  assert.deepEqual(done, ['urgent 0', 'urgent 1', 'urgent 2', 'late', 'urgent 3', 'later']);
});

test('beyond the bound the last of the line is refused, not the one who comes', async () => {
  const { done, run, end } = createFixture({ waitingMax: 2 });
  const all = [run('a', 1_000), run('b', 500), run('c')];
  await new Promise(setImmediate);
  assert.deepEqual(done, ['a refused']);
  await end();
  await Promise.all(all);
  assert.deepEqual(done, ['a refused', 'c', 'b']);
});

test('work that fails gives its place to the next', async () => {
  const serial = createSerial();
  const fault = new Error('fault');
  const failed = serial.run(() => Promise.reject(fault));
  const next = serial.run(() => 'next');
  await assert.rejects(failed, fault);
  assert.equal(await next, 'next');
  assert.equal(serial.isIdle, true);
});
