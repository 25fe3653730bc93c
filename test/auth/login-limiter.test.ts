/** Failed logins are counted per account and per address, for a minute, in bounded memory (R21). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countedMax, createLoginLimiter } from '../../dist/auth/login-limiter.js';
import { AppError } from '../../dist/errors.js';

function createFixture(failuresMax = 3) {
  const clock = { milliseconds: 1_700_000_000_000 };
  const now = () => new Date(clock.milliseconds);
  const limiter = createLoginLimiter({ failuresMax, now });
  const fail = (username: string, address: string, times = 1): void => {
    for (let time = 0; time < times; time += 1) limiter.fail({ username, address });
  };
  /** Seconds to wait, or undefined where the attempt may be made. */
  const waitOf = (username: string, address: string): number | undefined => {
    try {
      limiter.check({ username, address });
      return undefined;
    } catch (error) {
      assert.ok(error instanceof AppError);
      assert.equal(error.code, 'too_many_requests');
      return error.facts.retryAfterSeconds;
    }
  };
  return { clock, limiter, fail, waitOf };
}

test('an account is refused after its failures, from every address, and no other one is', () => {
  const { fail, waitOf } = createFixture();
  fail('ann', '192.0.2.1', 2);
  assert.equal(waitOf('ann', '192.0.2.1'), undefined);
  fail('ann', '192.0.2.2');
  assert.equal(waitOf('ann', '192.0.2.1'), 60);
  assert.equal(waitOf('ann', '192.0.2.9'), 60);
  assert.equal(waitOf('bob', '192.0.2.1'), undefined);
  assert.equal(waitOf('Ann', '192.0.2.1'), undefined);
});

test('the wait ends a minute after the first failure', () => {
  const { clock, fail, waitOf } = createFixture();
  fail('ann', '192.0.2.1');
  clock.milliseconds += 20_500;
  fail('ann', '192.0.2.1', 2);
  assert.equal(waitOf('ann', '192.0.2.1'), 40);
  clock.milliseconds += 39_499;
  assert.equal(waitOf('ann', '192.0.2.1'), 1);
  clock.milliseconds += 1;
  assert.equal(waitOf('ann', '192.0.2.1'), undefined);
  fail('ann', '192.0.2.1', 2);
  assert.equal(waitOf('ann', '192.0.2.1'), undefined);
});

test('an address is refused after ten times as many failures, whatever the names', () => {
  const { fail, waitOf } = createFixture();
  for (let index = 0; index < 29; index += 1) fail(`user${index}`, '192.0.2.1');
  assert.equal(waitOf('ann', '192.0.2.1'), undefined);
  fail('one more', '192.0.2.1');
  assert.equal(waitOf('ann', '192.0.2.1'), 60);
  assert.equal(waitOf('ann', '192.0.2.2'), undefined);
});

test('a success clears the account and not the address', () => {
  const { limiter, fail, waitOf } = createFixture();
  fail('ann', '192.0.2.1', 2);
  limiter.succeed({ username: 'ann', address: '192.0.2.1' });
  fail('ann', '192.0.2.1', 2);
  assert.equal(waitOf('ann', '192.0.2.1'), undefined);
  for (let index = 0; index < 30; index += 1) fail(`user${index}`, '192.0.2.1');
  limiter.succeed({ username: 'ann', address: '192.0.2.1' });
  assert.equal(waitOf('ann', '192.0.2.1'), 60);
});

test('addresses of one IPv6 network of 64 bits count as one, others do not', () => {
  const { fail, waitOf } = createFixture();
  for (let index = 0; index < 30; index += 1) fail(`user${index}`, `2001:db8:1:2::${index}`);
  assert.equal(waitOf('ann', '2001:db8:1:2:a:b:c:d'), 60);
  assert.equal(waitOf('ann', '2001:db8:1:3::1'), undefined);
  assert.equal(waitOf('ann', '2001:db8::1:2:0:1'), undefined);
  assert.equal(waitOf('ann', '::1'), undefined);
  for (let index = 0; index < 30; index += 1) fail(`name${index}`, '::ffff:192.0.2.1');
  assert.equal(waitOf('ann', '::ffff:192.0.2.1'), 60);
  assert.equal(waitOf('ann', '::ffff:192.0.2.2'), undefined);
});

test('names of any length and kind are keys of their own', () => {
  const { fail, waitOf } = createFixture();
  const long = 'x'.repeat(1_000_000);
  fail(long, '192.0.2.1', 3);
  fail('__proto__', '192.0.2.1', 3);
  assert.equal(waitOf(long, '192.0.2.1'), 60);
  assert.equal(waitOf(`${long}y`, '192.0.2.1'), undefined);
  assert.equal(waitOf('__proto__', '192.0.2.1'), 60);
  assert.equal(waitOf('constructor', '192.0.2.1'), undefined);
});

test('beyond the bound the oldest counts are dropped, the newest kept', () => {
  const { fail, waitOf } = createFixture(1);
  fail('first', '192.0.2.1');
  for (let index = 1; index < countedMax; index += 1) fail(`user${index}`, `address ${index}`);
  assert.equal(waitOf('first', '192.0.2.1'), 60);
  fail('last', '192.0.2.2');
  assert.equal(waitOf('first', '192.0.2.9'), undefined);
  assert.equal(waitOf('last', '192.0.2.9'), 60);
  assert.equal(waitOf('user2', '192.0.2.9'), 60);
});
