/** Failed logins lock an account for one address; many of either queue its logins (Spec §5, R21). */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import { createCounts } from '../../dist/auth/client-counts.js';
import { createLogin, createLoginLimiter } from '../../dist/auth/login.js';
import { AppError } from '../../dist/errors.js';
import { times } from '../support/lists.ts';

const countedMax = 32_768;
const waitingMax = 40;

type Outcome = 'entered' | 'waits' | `${string} ${number}`;

function createFixture(t: TestContext, failuresMax = 3) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const clock = { milliseconds: 5_000 };
  const limiter = createLoginLimiter(failuresMax, () => clock.milliseconds);
  const fail = (username: string, address: string, count = 1): void => {
    for (const _ of times(count)) limiter.fail({ username, address });
  };
  /** Begins an attempt; tells what has become of it whenever it is asked. */
  const enter = (username: string, address: string): (() => Promise<Outcome>) => {
    let outcome: Outcome = 'waits';
    limiter.enter({ username, address }).then(
      () => (outcome = 'entered'),
      (error: unknown) => {
        assert.ok(error instanceof AppError);
        outcome = `${error.code} ${error.facts.retryAfterSeconds ?? 0}`;
      },
    );
    return async () => {
      await new Promise(setImmediate);
      return outcome;
    };
  };
  const outcomeOf = (username: string, address: string): Promise<Outcome> =>
    enter(username, address)();
  /** Lets one interval pass, once those who came before it wait. */
  const tick = async (): Promise<void> => {
    await new Promise(setImmediate);
    t.mock.timers.tick(500);
    await new Promise(setImmediate);
  };
  return { clock, limiter, fail, enter, outcomeOf, tick };
}

const locked = 'too_many_requests';

test('the lock ends a minute after the first failure', async (t) => {
  const { clock, fail, outcomeOf } = createFixture(t);
  fail('ann', '192.0.2.1');
  clock.milliseconds += 20_500;
  fail('ann', '192.0.2.1', 2);
  assert.equal(await outcomeOf('ann', '192.0.2.1'), `${locked} 40`);
  clock.milliseconds += 39_499;
  assert.equal(await outcomeOf('ann', '192.0.2.1'), `${locked} 1`);
  clock.milliseconds += 1;
  assert.equal(await outcomeOf('ann', '192.0.2.1'), 'entered');
  fail('ann', '192.0.2.1', 2);
  assert.equal(await outcomeOf('ann', '192.0.2.1'), 'entered');
  fail('ann', '192.0.2.1');
  assert.equal(await outcomeOf('ann', '192.0.2.1'), `${locked} 60`);
});

test('a success clears the account for that address, and nothing else', async (t) => {
  const { limiter, fail, outcomeOf } = createFixture(t);
  fail('ann', '192.0.2.1', 2);
  fail('ann', '192.0.2.2', 3);
  limiter.succeed({ username: 'ann', address: '192.0.2.1' });
  fail('ann', '192.0.2.1', 2);
  assert.equal(await outcomeOf('ann', '192.0.2.1'), 'entered');
  assert.equal(await outcomeOf('ann', '192.0.2.2'), `${locked} 60`);
});

test('addresses of one IPv6 network of 64 bits count as one, others do not', async (t) => {
  const { fail, outcomeOf } = createFixture(t);
  for (const index of times(3)) fail('ann', `2001:db8:1:2::${index}`);
  assert.equal(await outcomeOf('ann', '2001:db8:1:2:a:b:c:d'), `${locked} 60`);
  for (const address of ['2001:db8:1:3::1', '2001:db8::1:2:0:1', '::1'])
    assert.equal(await outcomeOf('ann', address), 'entered', address);
});

const widely: Readonly<Record<string, (name: string) => readonly [string, string]>> = {
  'an account over many addresses': (name) => ['ann', name],
  'an address over many accounts': (name) => [name, '192.0.2.1'],
};
for (const [what, toAttempt] of Object.entries(widely)) {
  test(`${what} is queued after ten times as many failures, and is not locked`, async (t) => {
    const { clock, fail, enter, tick } = createFixture(t);
    const begin = (name: string) => enter(...toAttempt(name));
    const failOnce = (index: number): void => fail(...toAttempt(`192.0.2.${index}`));
    for (const index of times(29)) failOnce(index);
    for (const name of ['a', 'b', 'c']) assert.equal(await begin(name)(), 'entered', name);
    failOnce(29);
    const [first, second, third] = [begin('a'), begin('b'), begin('c')];
    const outcomes = () => Promise.all([first(), second(), third()]);
    assert.deepEqual(await outcomes(), ['entered', 'waits', 'waits']);
    await tick();
    assert.deepEqual(await outcomes(), ['entered', 'entered', 'waits']);
    await tick();
    assert.deepEqual(await outcomes(), ['entered', 'entered', 'entered']);
    // Once nobody has waited, the next attempt need not either.
    await tick();
    await tick();
    assert.equal(await begin('d')(), 'entered');
    clock.milliseconds += 60_000;
    for (const name of ['a', 'b', 'c']) assert.equal(await begin(name)(), 'entered', name);
  });
}

test('those who failed least go first, and what an address has waiting counts too', async (t) => {
  const { fail, enter, tick } = createFixture(t);
  for (const index of times(30)) fail('ann', `192.0.2.${index}`);
  const first = enter('ann', '198.51.100.1');
  const attacker = enter('ann', '192.0.2.1');
  const crowd = [1, 2, 3].map(() => enter('ann', '198.51.100.2'));
  const owner = enter('ann', '203.0.113.1');
  const outcomes = async () =>
    Promise.all([first(), crowd[0]?.(), owner(), attacker(), crowd[1]?.(), crowd[2]?.()]);
  for (let entered = 1; entered <= 6; entered += 1) {
    const expected = times(6).map((index) => (index < entered ? 'entered' : 'waits'));
    assert.deepEqual(await outcomes(), expected, `round ${entered}`);
    await tick();
  }
});

test('beyond the bound the one who failed most is refused, not the one who comes', async (t) => {
  const { fail, enter, outcomeOf } = createFixture(t);
  for (const index of times(100)) fail('ann', `192.0.2.${index}`);
  await outcomeOf('ann', '198.51.100.1');
  const attackers = times(waitingMax).map((index) => enter('ann', `192.0.2.${index}`));
  const owner = enter('ann', '203.0.113.1');
  const outcomes = await Promise.all(attackers.map((outcome) => outcome()));
  assert.equal(outcomes.at(-1), 'overloaded 20');
  assert.deepEqual(new Set(outcomes.slice(0, -1)), new Set(['waits']));
  assert.equal(await owner(), 'waits');
  assert.equal(await outcomeOf('ann', '192.0.2.99'), 'overloaded 20');
});

test('who is locked while waiting is refused when it is let in', async (t) => {
  const { fail, enter, tick } = createFixture(t);
  for (const index of times(30)) fail('ann', `192.0.2.${index}`);
  const [, second] = [enter('ann', '198.51.100.1'), enter('ann', '198.51.100.1')];
  fail('ann', '198.51.100.1', 3);
  await tick();
  assert.equal(await second?.(), `${locked} 60`);
});

test('names of any length and kind are keys of their own', async (t) => {
  const { fail, outcomeOf } = createFixture(t);
  const long = 'x'.repeat(1_000_000);
  for (const name of [long, '__proto__', 'ann']) {
    fail(name, '192.0.2.1', 3);
    assert.equal(await outcomeOf(name, '192.0.2.1'), `${locked} 60`);
  }
  for (const name of [`${long}y`, 'constructor', 'Ann'])
    assert.equal(await outcomeOf(name, '192.0.2.1'), 'entered');
});

test('beyond the bound the oldest counts are dropped, the newest kept', () => {
  const counts = createCounts(() => 0);
  for (let index = 0; index < countedMax; index += 1) counts.add(`key ${index}`);
  assert.equal(counts.find('key 0').count, 1);
  counts.add('one more');
  const found = ['key 0', 'key 1', 'one more'].map((key) => counts.find(key).count);
  assert.deepEqual(found, [0, 1, 1]);
});

const account = { id: '', username: 'ann', email: '', roles: [], passwordHash: 'hash' };

test('an unknown user and a wrong password cost the same check, a locked one costs none', async () => {
  const checked: (string | undefined)[] = [];
  const login = createLogin({
    security: () => undefined,
    accounts: { findForLogin: (name) => (name === 'ann' ? account : undefined) },
    limiter: createLoginLimiter(1, () => 0),
    checkPassword: (_password, hash) => {
      checked.push(hash);
      return Promise.resolve(false);
    },
    tokens: createTokens({
      secrets: [Buffer.alloc(32)],
      ttlSeconds: 60,
      sessionSecondsMax: 60,
      now: () => new Date(),
    }),
  });
  const sent = { password: '', address: '192.0.2.1', requestId: 'r-1' };
  const attempt = (username: string) => login({ username, ...sent });
  for (const name of ['ann', 'nobody'])
    await assert.rejects(attempt(name), { code: 'invalid_credentials' }, name);
  for (const name of ['ann', 'nobody'])
    await assert.rejects(attempt(name), { code: 'too_many_requests' }, name);
  assert.deepEqual(checked, ['hash', undefined]);
});
