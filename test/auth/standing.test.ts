/** The place of a login in a line: nobody waits for ever, however many others have failed less. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toPlace } from '../../dist/auth/standing.js';
import { createSerial } from '../../dist/serial.js';
import { gate } from '../support/http-kit.ts';

/** Beside a login that has failed so often, one without a failure comes every 100 ms. */
async function countOvertakers(failures: number): Promise<number> {
  const clock = { now: 0 };
  const line = createSerial({ now: () => clock.now });
  const first = gate();
  const blocked = line.run(() => first.opened);
  let overtakers = 0;
  let isChecked = false;
  const enter = (client: string, failed: number, work: () => void): Promise<void> =>
    line.run(work, toPlace(line, { client, failures: failed }));
  const all = [enter('slow', failures, () => void (isChecked = true))];
  for (clock.now = 50; clock.now < 60_000; clock.now += 100) {
    const count = (): void => void (overtakers += isChecked ? 0 : 1);
    all.push(enter(`other ${clock.now}`, 0, count));
  }
  first.open();
  await Promise.all([blocked, ...all]);
  return overtakers;
}

test('others overtake a login for a second for each of its failures, for 20 at most', async () => {
  assert.equal(await countOvertakers(0), 0);
  assert.equal(await countOvertakers(3), 30);
  assert.equal(await countOvertakers(500), 200);
});
