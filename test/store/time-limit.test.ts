/** The time limit of a connection: a silent one is ended, unless its server is at work. */

import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createTimeLimit } from '../../dist/store/postgres/time-limit.js';

/** Of timers of one process the shorter one is first, however busy it is. */
const later = (milliseconds: number): Promise<string> => pause(milliseconds, 'not yet');

/** A connection whose statement may take no time at all. */
function start(isAtWork: () => Promise<boolean> | undefined) {
  let limit: ReturnType<typeof createTimeLimit> | undefined;
  const ended = new Promise<string>((resolve) => {
    const stream = { destroy: () => resolve('ended') };
    limit = createTimeLimit(stream as unknown as Duplex, 0, isAtWork);
  });
  return { ended, limit };
}

describe('a silent connection', { concurrency: true }, () => {
  test('is asked about after 250 ms more, and ended after a second', async () => {
    let asked = 0;
    const { ended } = start(() => {
      asked += 1;
      return Promise.reject(new Error('away'));
    });
    const late = later(1_500);
    assert.equal(await later(200), 'not yet');
    assert.equal(asked, 0);
    await later(300);
    assert.equal(asked, 1);
    assert.equal(await Promise.race([ended, later(300)]), 'not yet');
    assert.equal(await Promise.race([ended, late]), 'ended');
  });

  test('whose server is at work is kept', async () => {
    const { ended } = start(() => Promise.resolve(true));
    assert.equal(await Promise.race([ended, later(1_200)]), 'not yet');
  });

  test('that has answered in time is not asked about', async () => {
    const { ended, limit } = start(() => assert.fail('asked'));
    limit?.stop();
    assert.equal(await Promise.race([ended, later(500)]), 'not yet');
  });
});
