import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSerial } from '../dist/serial.js';

test('work runs one after the other, in its order, also after work that fails', async () => {
  const serially = createSerial();
  const events: string[] = [];
  const work = async (name: string): Promise<string> => {
    events.push(`${name} begins`);
    await Promise.resolve();
    events.push(`${name} ends`);
    if (name === 'b') throw new Error(name);
    return name;
  };
  const outcomes = await Promise.allSettled(
    ['a', 'b', 'c'].map((name) => serially(() => work(name))),
  );
  const statuses = outcomes.map(({ status }) => status);
  assert.deepEqual(statuses, ['fulfilled', 'rejected', 'fulfilled']);
  const expected = ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]);
  assert.deepEqual(events, expected);
});
