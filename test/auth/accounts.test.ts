/** Which accounts there are: demo accounts, USERS_FILE, none (R3, R20). */

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadAccounts } from '../../dist/auth/accounts.js';
import { createTokens } from '../../dist/auth/jwt.js';
import { parsePasswordHash, verifyPassword } from '../../dist/auth/password.js';
import { ConfigError } from '../../dist/config.js';
import { toId } from '../../dist/domain/ids.js';
import { createDirectory } from '../support/uploads.ts';

const usersFileBytesMax = 1_048_576;

const passwordHash = `scrypt$16384$8$1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
const entry = { username: 'ann', email: 'ann@example.com', roles: ['USER'], passwordHash };

const none = { usersFile: '', environment: '', demoData: true };
const loadText = async (text: string | Buffer) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-users-'));
  try {
    const usersFile = join(folder, 'u.json');
    await writeFile(usersFile, text);
    return await loadAccounts({ ...none, usersFile });
  } finally {
    await rm(folder, { recursive: true });
  }
};
const load = (value: unknown) => loadText(JSON.stringify(value));

test('without a file there are the two demo accounts, whose password is "password"', async () => {
  const accounts = await loadAccounts(none);
  const names = accounts.map(({ username, roles }) => `${username} ${roles.join()}`);
  assert.deepEqual(names, ['user USER', 'admin USER,ADMIN']);
  const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  for (const [at, account] of accounts.entries()) {
    assert.match(account.id, version7, `account ${at}`);
    const hash = parsePasswordHash(account.passwordHash);
    assert.ok(hash, `account ${at}`);
    assert.equal(await verifyPassword('password', hash), true, `account ${at}`);
  }
  assert.equal(new Set(accounts.map(({ id }) => id)).size, 2);
});

test('an account of the file has the same id on every start, a version 7 one', async () => {
  assert.deepEqual(await load([]), []);
  const [ann, bob] = await load([entry, { ...entry, username: 'bob' }]);
  const [again] = await load([{ ...entry, email: 'new@example.com' }]);
  assert.ok(ann && bob && again);
  assert.equal(ann.id, again.id);
  assert.notEqual(ann.id, bob.id);
  assert.equal(toId(ann.id), ann.id);
  assert.match(ann.id, /^018f3173-7000-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
});

test('a mark of the byte order and unknown members are left out', async () => {
  const [account] = await loadText(`\uFEFF${JSON.stringify([{ ...entry, note: 'x' }])}`);
  assert.equal(account?.username, 'ann');
  assert.equal(Object.hasOwn(account ?? {}, 'note'), false);
});

/** The one line that a person at a terminal sees. */
async function faultOf(loading: Promise<unknown>): Promise<string> {
  const error: unknown = await loading.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConfigError);
  assert.match(error.message, /USERS_FILE/);
  assert.doesNotMatch(error.message, /\n|AAAA/);
  return error.message;
}

test('a file that is missing, too large, or no array in JSON is one clear error', async (t) => {
  const folder = await createDirectory(t);
  const usersFile = join(folder, 'users.json');
  assert.match(await faultOf(loadAccounts({ ...none, usersFile })), /users\.json.*ENOENT/);
  assert.match(await faultOf(loadAccounts({ ...none, usersFile: folder })), /EISDIR/);

  const list = JSON.stringify([entry]);
  await writeFile(usersFile, list.padEnd(usersFileBytesMax));
  assert.equal((await loadAccounts({ ...none, usersFile })).length, 1);
  await writeFile(usersFile, list.padEnd(usersFileBytesMax + 1));
  assert.match(await faultOf(loadAccounts({ ...none, usersFile })), /at most 1048576 bytes/);

  assert.match(await faultOf(loadText('')), /JSON/);
  assert.match(await faultOf(loadText(Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]))), /UTF-8/);
  assert.match(await faultOf(load({ users: [] })), /array/);
});

const refused: Readonly<Record<string, readonly unknown[]>> = {
  username: [undefined, 7, 'x'.repeat(257), ...'| |a\nb|\uD800|ann |a\u0308|a\u200b'.split('|')],
  email: [undefined, 'x'.repeat(321)],
  roles: [undefined, 'USER', ['USER', ''], Array(500).fill('USER'), Array(4).fill('x'.repeat(247))],
  passwordHash: [undefined, 'secret'],
};

test('every faulty entry is named by its place and what is wrong with it', async (t) => {
  const members = Object.entries(refused).flatMap(([name, values]) =>
    values.map((value) => [name, { ...entry, password: 'secret', [name]: value }] as const),
  );
  const others = [null, 'ann', []].map((value) => ['object', value] as const);
  for (const [fault, value] of [...others, ['username', {}] as const, ...members]) {
    await t.test(JSON.stringify([fault, value]), async () => {
      assert.match(await faultOf(load([entry, value])), new RegExp(`entry 1.*${fault}`));
    });
  }
  assert.match(await faultOf(load([entry, entry])), /entry 1: username is taken/);
  const many = await faultOf(load([null, entry, {}, ...Array<unknown>(100).fill(1)]));
  assert.match(many, /entry 0: .*; entry 2: .*; and 92 more\.$/);
});

test('roles of 1,000 bytes in all are taken', async () => {
  const roles = [...Array<string>(3).fill('x'.repeat(247)), 'x'.repeat(246)];
  assert.equal(JSON.stringify(roles).length, 1_000);
  assert.deepEqual((await load([{ ...entry, roles }]))[0]?.roles, roles);
});

test('an account at every bound gets a token that is not too long', async () => {
  const username = '語'.repeat(256);
  const roles = ['語'.repeat(165), '語'.repeat(165)];
  const [account] = await load([{ ...entry, username, email: '語'.repeat(320), roles }]);
  assert.ok(account);
  const secrets = [Buffer.alloc(32, 1)] as const;
  const now = (): Date => new Date();
  const seconds = { ttlSeconds: 31_536_000, sessionSecondsMax: 31_536_000 };
  const tokens = createTokens({ secrets: [...secrets], ...seconds, now });
  const claims = tokens.verify(tokens.sign(account));
  assert.ok(typeof claims !== 'string');
  assert.equal(claims.sub, username);
});
