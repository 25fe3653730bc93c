/** What `node dist/server.js accounts` refuses before it opens a store. */

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fails, here, runHere } from '../support/accounts-command.js';
import { runCommand } from '../support/command.js';

test('a store in memory keeps no accounts', async () => {
  for (const env of [{}, { STORE_URL: 'memory:' }]) {
    await fails(here('list', env), /STORE_URL: .*memory/);
    await fails(
      here('add ann --email a@example.org', env, 'a jar of black ink\n'),
      /STORE_URL: .*memory/,
    );
  }
});

test('names, addresses and settings that are not valid are one line', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-users-'));
  t.after(() => rm(folder, { recursive: true }));
  const usersFile = join(folder, 'users.json');
  await writeFile(usersFile, '[{}]');
  const add = ['add', '--role', 'USER', '--email'];
  await fails(runHere([...add, 'a', ' '], {}), /username must be text of 1 to 256/);
  await fails(runHere([...add, 'a', 'a\u001b[2J'], {}), /username must be text/);
  await fails(runHere([...add, 'a\nb', 'ann'], {}), /email must be text of 1 to 320/);
  await fails(runHere([...add, 'a', 'ann', '--role', ''], {}), /roles must be/);
  await fails(here('list', { STORE_URL: 'mysql://a' }), /STORE_URL must be/);
  const env = { STORE_URL: 'sqlite:///a', USERS_FILE: usersFile };
  await fails(runHere([...add, 'a@example.org', 'ann'], env), /USERS_FILE: entry 0/);
});

test('arguments that make no command get the usage, and 2', async () => {
  const wrong = [
    [],
    ['ad'],
    ['add'],
    ['add', 'ann'],
    ['add', '--email', 'a@example.org'],
    ['add', 'ann', '--email'],
    ['add', 'ann', 'secret', '--email', 'a@example.org'],
    ['add', 'ann', '--email', 'a@example.org', '--password', 'secret'],
    ['passwd'],
    ['passwd', 'ann', 'secret'],
    ['passwd', 'ann', '--role', 'USER'],
    ['list', 'ann'],
    ['change', 'ann'],
    ['remove', 'ann', '--force'],
    ['remove'],
    ['remove', 'ann', 'bob'],
  ];
  for (const args of wrong) {
    const { code, output, errors } = await runHere(args, {});
    assert.deepEqual([code, output], [2, ''], String(args));
    assert.match(errors, /^usage: node dist\/server\.js accounts add <username>/);
    assert.doesNotMatch(errors, /secret/);
  }
  assert.equal((await runCommand(['accounts', 'passwd'], {})).code, 2);
});

test('--help shows the usage, and what is wrong with arguments is named', async () => {
  const help = await runHere(['--help'], {});
  assert.deepEqual([help.code, help.errors], [0, '']);
  assert.match(help.output, /^usage: .*12 characters/s);
  for (const [args, message] of [
    [['add', 'ann'], 'add needs --email.'],
    [['add', '--email', 'a@example.org'], 'add needs a username.'],
    [['list', '--rolle', 'A'], "Unknown option '--rolle'."],
    [['list', '--role', 'A'], 'list takes no option.'],
    [['change', 'ann'], 'There is no command accounts "change".'],
    [['ad'], 'There is no command accounts "ad".'],
    [[], 'There is no command accounts "".'],
  ] as const) {
    const { errors } = await runHere(args, {});
    assert.equal(errors.trimEnd().split('\n').at(-1), `inkwell: ${message}`);
  }
});

test('an address that is none is refused before anything is opened', async () => {
  const env = { STORE_URL: 'postgres://127.0.0.1:1/none' };
  for (const email of ['ann', 'ann@', 'a b@example.org', '@example.org']) {
    await fails(runHere(['add', 'ann', '--email', email], env), /is not an email address/);
  }
});
