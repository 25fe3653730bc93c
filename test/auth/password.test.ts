/** Password hashes and the short queue in front of them (R20, R21). */

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { test } from 'node:test';
import {
  createPasswordChecker,
  createPasswordLine,
  hashPassword,
  parsePasswordHash,
  verifyPassword,
} from '../../dist/auth/password.js';
import { AppError } from '../../dist/errors.js';
import { syncMocks } from '../support/builtins.ts';
import { words } from '../support/lists.ts';

const passwordBytesMax = 1_024;
const checksUnderWayMax = 2;

const salt = 'AAAAAAAAAAAAAAAAAAAAAA';
const hash = 'A'.repeat(43);

const standing = { client: '192.0.2.1', failures: 0 };

async function hashOf(password: string) {
  const parsed = parsePasswordHash(await hashPassword(password));
  assert.ok(parsed);
  return parsed;
}

test('a password matches its own hash, of the documented form, and no other does', async () => {
  const [hashed, again] = await Promise.all([
    hashPassword('pässwörd 🔑'),
    hashPassword('pässwörd 🔑'),
  ]);
  assert.notEqual(hashed, again);
  assert.match(hashed, /^scrypt\$16384\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  const kept = parsePasswordHash(hashed) ?? assert.fail();
  assert.equal(await verifyPassword('pässwörd 🔑', kept), true);
  assert.equal(await verifyPassword('pässwörd', kept), false);
  assert.equal(await verifyPassword('', kept), false);
});

test('a password at the limit counts, one byte more is wrong and never hashed', async () => {
  const longest = 'é'.repeat(passwordBytesMax / 2);
  const kept = await hashOf(longest);
  assert.equal(await verifyPassword(longest, kept), true);
  assert.equal(await verifyPassword(`${longest}x`, kept), false);
  assert.equal(await verifyPassword(`${longest}x`, await hashOf('')), false);
  await assert.rejects(hashPassword(`${longest}x`), RangeError);
});

const long = 'A'.repeat(86);
const good = `
  scrypt$16384$8$1$${salt}$${hash} scrypt$131072$8$4$${salt}$${hash}
  scrypt$65536$16$1$${salt}$${hash} scrypt$16384$8$1$${long}$${hash}
`;
const bad = `
  password bcrypt$16384$8$1$${salt}$${hash} scrypt$8192$8$1$${salt}$${hash}
  scrypt$16385$8$1$${salt}$${hash} scrypt$262144$8$1$${salt}$${hash}
  scrypt$131072$16$1$${salt}$${hash} scrypt$16384$7$1$${salt}$${hash}
  scrypt$16384$8$0$${salt}$${hash} scrypt$16384$8$5$${salt}$${hash}
  scrypt$016384$8$1$${salt}$${hash} scrypt$16384$8$1$${salt.slice(1)}$${hash}
  scrypt$16384$8$1$${long}A$${hash} scrypt$16384$8$1$${salt.slice(1)}B$${hash}
  scrypt$16384$8$1$${salt}$${hash.slice(1)} scrypt$16384$8$1$${salt}$${hash.slice(1)}B
  scrypt$16384$8$1$${salt}$${hash}=
`;

test('a password that is too long costs the work of any other', async () => {
  const check = createPasswordChecker(createPasswordLine(0));
  const stored = await hashPassword('short');
  const tooLong = 'x'.repeat(1_025);
  const checked = [1, 2].map(async () => check(tooLong, stored, standing));
  // Nothing that a thread does can end during microtasks.
  for (let microtask = 0; microtask < 100; microtask += 1) await Promise.resolve();
  await assert.rejects(check('short', stored, standing), { code: 'overloaded' });
  assert.deepEqual(await Promise.all(checked), [false, false]);
});

test('a stored hash is taken only in its one form and within its bounds', () => {
  for (const text of words(good)) assert.ok(parsePasswordHash(text), text);
  const [first = ''] = words(good);
  for (const text of ['', `${first}\n`, ` ${first}`, ...words(bad)])
    assert.equal(parsePasswordHash(text), undefined, JSON.stringify(text));
});

test('the checker says no to a password without an account, also to its own', async () => {
  const check = createPasswordChecker(createPasswordLine(4), await hashPassword('secret'));
  assert.equal(await check('secret', undefined, standing), false);
});

test('a check without an account does the work of one with an account', async (t) => {
  const { mock } = t.mock.method(crypto, 'scrypt');
  syncMocks(t);
  const check = createPasswordChecker(createPasswordLine(4));
  await check('wrong', await hashPassword('secret'), standing);
  await check('wrong', undefined, standing);
  const [, known, unknown] = mock.calls.map(({ arguments: [password, given, length, options] }) => {
    return [password, Buffer.from(given as Buffer).length, length, options];
  });
  assert.notEqual(known, undefined);
  assert.deepEqual(unknown, known);
});

test('beyond those under way and those that may wait a check is refused at once', async () => {
  const check = createPasswordChecker(createPasswordLine(3));
  const admitted = Array.from({ length: checksUnderWayMax + 3 }, () =>
    check('x', undefined, standing),
  );
  await assert.rejects(check('x', undefined, standing), (error) => {
    assert.ok(error instanceof AppError);
    assert.equal(error.code, 'overloaded');
    assert.equal(error.facts.retryAfterSeconds, 1);
    return true;
  });
  assert.deepEqual(await Promise.all(admitted), Array(checksUnderWayMax + 3).fill(false));
  assert.equal(await check('x', undefined, standing), false);
});

test('of a full queue those whose address failed most are refused, not those who come', async () => {
  const check = createPasswordChecker(createPasswordLine(3));
  const checked: string[] = [];
  const ask = async (client: string, failures: number): Promise<void> => {
    try {
      await check('x', undefined, { client, failures });
      checked.push(client);
    } catch (error) {
      assert.ok(error instanceof AppError && error.code === 'overloaded');
      checked.push(`${client} refused`);
    }
  };
  const all = [ask('first', 9), ask('second', 9), ask('a', 2), ask('b', 5), ask('c', 1)];
  // They come last, to a full queue.
  all.push(ask('owner', 0), ask('d', 2), ask('owner', 0));
  await Promise.all(all);
  assert.deepEqual(checked.slice(0, 3), ['b refused', 'd refused', 'a refused']);
  // Two at a time, so that their order is open.
  assert.deepEqual(checked.slice(3).toSorted(), ['c', 'first', 'owner', 'owner', 'second']);
});

test('a malformed stored hash is a fault that gives its place in the queue back', async () => {
  const check = createPasswordChecker(createPasswordLine(0));
  for (let round = 0; round < 4; round += 1)
    await assert.rejects(check('x', 'nonsense', standing), /malformed/, `round ${round}`);
  assert.equal(await check('x', undefined, standing), false);
});
