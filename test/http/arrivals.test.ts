/** New connections of an address whose connection was ended for the pieces of its body. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createArrivals } from '../../dist/http/server/arrivals.js';

test('the connections of such an address are spaced by 25 ms, those of others are not', () => {
  let now = 1_000;
  const { slowDown, delay } = createArrivals([], () => now);
  assert.equal(delay('192.0.2.1'), 0);
  slowDown('192.0.2.1');
  assert.deepEqual([delay('192.0.2.1'), delay('192.0.2.1'), delay('192.0.2.2')], [25, 50, 0]);
  now += 75;
  slowDown('192.0.2.1');
  assert.equal(delay('192.0.2.1'), 25);
  now += 1_000;
  assert.deepEqual([delay('192.0.2.1'), delay('192.0.2.1')], [0, 0]);
});

test('a trusted proxy is not slowed down, however its address is written', () => {
  const { slowDown, delay } = createArrivals(['10.0.0.0/8', '::1'], () => 0);
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::1', '']) {
    slowDown(address);
    assert.equal(delay(address), 0, address);
  }
});
