/** `node dist/server.js accounts …`: what it refuses, and what it does beside a server on its store. */

import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it, test, type TestContext } from 'node:test';
import { type Ended, fails, runAtTerminal, runCommand } from '../support/command.ts';
import { runCommandHere, skipTerminal } from '../support/command.ts';
import { post } from '../support/graphql-http.ts';
import { askLogin, askProfile, logIn } from '../support/login.ts';
import { skipPostgres } from '../support/postgres.ts';
import { type NodeProcess, startNode } from '../support/program.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';
import { createDirectory } from '../support/uploads.ts';

const ink = 'a jar of black ink\n';

type Env = Readonly<Record<string, string>>;

/** The arguments, or a text of them between blanks. */
const here = (args: string | readonly string[], env: Env, input = ''): Promise<Ended> => {
  const all = typeof args === 'string' ? args.split(' ') : args;
  return runCommandHere(['accounts', ...all], { env, input });
};

async function succeeds(running: Promise<Ended>, output: string): Promise<void> {
  assert.deepEqual(await running, { code: 0, output, errors: '' });
}

describe('on SQLite', { skip: skipSqlite }, () => {
  describeCommand(async (context) => toSqliteUrl(await newSqliteFile(context)));

  it('a file that is not there is created by `add` alone', async (t) => {
    const path = await newSqliteFile(t);
    const env = { STORE_URL: toSqliteUrl(path) };
    for (const args of ['list', 'passwd ann', 'remove ann']) {
      await fails(here(args, env, ink), /STORE_URL: .*cannot be opened \(ENOENT/);
    }
    assert.deepEqual(await readdir(dirname(path)), []);
  });

  it('an account can be there before the first start, and nothing else is then', async (t) => {
    const path = await newSqliteFile(t);
    const env = { STORE_URL: toSqliteUrl(path), NODE_ENV: 'production' };
    await succeeds(here('add ann --email a@example.org', env, ink), 'Added "ann".\n');
    const count = (table: string): unknown =>
      inSqlite(path, (file) => file.prepare(`SELECT count(*) AS n FROM ${table}`).all()[0]?.['n']);
    assert.deepEqual(['posts', 'todos', 'articles'].map(count), [0, 0, 0]);
    const node = await startNode(t, env);
    assert.deepEqual(['posts', 'todos', 'articles'].map(count), [3, 3, 2]);
    assert.equal((await askLogin(node, 'ann', 'a jar of black ink')).status, 200);
  });
});

describe('on PostgreSQL', { skip: skipPostgres }, () => {
  describeCommand(() => database.clearedDatabase());

  it('a database that is away, or that is not there, is one line', async () => {
    const url = await database.emptyDatabase();
    const wrong = { STORE_URL: `${url}_not` };
    await fails(here('list', wrong), /STORE_URL: .*database "test_\d+_not" does not exist/);
    await fails(here('list', { STORE_URL: 'postgres://127.0.0.1:1/a' }), /does not answer/);
  });
});

function describeCommand(newUrl: (context: TestContext) => Promise<string>): void {
  it('what it changes counts at the next login, without a restart', async (t) => {
    const env = { STORE_URL: await newUrl(t), TOKEN_TTL_SECONDS: '3600' };
    const node = await startServer(t, { env });
    assert.equal((await askLogin(node, 'ann', 'a jar of black ink')).status, 401);
    const add = 'add ann --email ann@example.org --role USER --role ADMIN';
    // As a process of its own.
    const added = runCommand(['accounts', ...add.split(' ')], { env, input: ink });
    await succeeds(added, 'Added "ann".\n');
    const token = await logIn(node, 'ann', 'a jar of black ink');
    const found = await (await askProfile(node, `Bearer ${token}`)).json();
    const { id, ...rest } = found as Record<string, unknown>;
    assert.deepEqual(rest, { username: 'ann', email: 'ann@example.org', roles: ['USER', 'ADMIN'] });

    const query = 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }';
    const made = await post(node, { query }, { Authorization: `Bearer ${token}` });
    assert.equal(made.status, 200);
    assert.deepEqual(await firstAuthor(node), { id, name: 'ann', email: 'ann@example.org' });

    const changed = here('passwd ann', env, 'a jar of blue blots\n');
    await succeeds(changed, 'Changed the password of "ann".\n');
    assert.equal((await askLogin(node, 'ann', 'a jar of black ink')).status, 401);
    assert.equal((await askProfile(node, `Bearer ${token}`)).status, 401);
    const later = await logIn(node, 'ann', 'a jar of blue blots');
    assert.equal((await askProfile(node, `Bearer ${later}`)).status, 200);

    await succeeds(here('remove ann', env), 'Removed "ann".\n');
    assert.equal((await askProfile(node, `Bearer ${later}`)).status, 401);
    assert.equal((await askLogin(node, 'ann', 'a jar of blue blots')).status, 401);
    assert.deepEqual(await firstAuthor(node), { id, name: 'ann', email: 'ann@example.org' });
    assert.equal((await askLogin(node, 'user', 'password')).status, 200);
  });

  it('changes address and roles, and hands posts over, at once and without a password', async (t) => {
    const env = { STORE_URL: await newUrl(t), REQUIRE_AUTH: 'owners' };
    const node = await startServer(t, { env });
    for (const name of ['ann', 'ben']) {
      const add = `add ${name} --email ${name}@example.org --role USER`;
      await succeeds(here(add, env, ink), `Added "${name}".\n`);
    }
    const token = await logIn(node, 'ann', 'a jar of black ink');
    const profile = async () => (await askProfile(node, `Bearer ${token}`)).json();
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ title: 'a', content: 'b', status: 'PUBLISHED' });
    const made = await node.fetch('/posts', { method: 'POST', headers, body });
    const path = made.headers.get('location') ?? '';
    await node.fetch(path, { method: 'PUT', headers, body });
    const before = (await profile()) as Readonly<Record<string, unknown>>;
    const author = await firstAuthor(node);
    assert.deepEqual(author, { id: before['id'], name: 'ann', email: 'ann@example.org' });

    await succeeds(here('change ann --email new@example.org', env), 'Changed "ann".\n');
    const moved = { ...before, email: 'new@example.org' };
    assert.deepEqual(await profile(), moved);
    assert.deepEqual(await firstAuthor(node), { ...author, email: 'new@example.org' });
    await succeeds(here('change ann --role ADMIN --role USER', env), 'Changed "ann".\n');
    assert.deepEqual(await profile(), { ...moved, roles: ['ADMIN', 'USER'] });
    const others = { method: 'DELETE', headers };
    const demo = '/posts/019b8d5e-9c00-7000-8000-000000000101';
    assert.equal((await node.fetch(demo, others)).status, 204);

    await succeeds(here('remove ann --posts-to ben', env), 'Removed "ann".\n');
    const heir = (await firstAuthor(node)) as Readonly<Record<string, unknown>>;
    assert.deepEqual([heir['name'], heir['email']], ['ben', 'ben@example.org']);
    const Authorization = `Bearer ${await logIn(node, 'ben', 'a jar of black ink')}`;
    const removed = await node.fetch(path, { method: 'DELETE', headers: { Authorization } });
    assert.equal(removed.status, 204);
  });

  it('refuses what cannot be, with one line, and changes nothing', async (t) => {
    const env = { STORE_URL: await newUrl(t) };
    await here('add zoe --email z@example.org', env, 'twelve chars');
    await here('add ann --email ann@example.org --role USER --role ADMIN', env, 'x'.repeat(1_024));
    const other = 'add bob --email x@example.org';
    for (const [args, input, fault] of [
      ['add ann --email x@example.org', ink, /"ann" already exists/],
      ['add user --email x@example.org', ink, /"user" is a demo acc/],
      [other, '', /No password was given/],
      [other, '\n', /must not be empty/],
      ['passwd bob', ink, /has no account "bob"/],
      ['passwd ann', 'x'.repeat(2_000), /at most 1024 bytes/],
      ['passwd ann', 'eleven char', /at least 12 characters/],
      ['add long-username --email a@b', 'Long-Username', /must differ from/],
      ['remove user', '', /has no account "user", which is a demo account/],
      ['change bob --role ADMIN', '', /has no account "bob"/],
      ['change ann --role ADMIN --role ROOT', '', /no role "ROOT", only USER, ADMIN/],
      ['add bob --email b@example.org --role admin', ink, /no role "admin"/],
      ['change ann --email ann', '', /"ann" is not an email address/],
      ['remove ann --posts-to bob --erase', '', /There is no account "bob"/],
    ] as const) {
      await fails(here(args, env, input), fault);
    }
    // By name, and without a hash.
    const both = 'ann\tann@example.org\tUSER,ADMIN\nzoe\tz@example.org\t\n';
    await succeeds(here('list', env), both);
  });

  it('asks at a terminal, twice, and shows nothing', { skip: skipTerminal }, async (t) => {
    const env = { STORE_URL: await newUrl(t) };
    const first = { question: 'Password: ', keys: 'secret black ink\r' };
    const add = ['accounts', 'add', 'ann', '--email', 'ann@example.org'];
    const different = { question: 'Repeat the password: ', keys: 'secret black inc\r' };
    const refused = await runAtTerminal(add, [first, different], env);
    assert.equal(refused.code, 1, refused.shown);
    assert.match(refused.shown, /inkwell: The two passwords differ\./);
    const left = await runAtTerminal(add, [{ ...first, keys: 'secret\u0003' }], env);
    assert.equal(left.code, 1, left.shown);
    const again = { ...first, question: 'Repeat the password: ' };
    const added = await runAtTerminal(add, [first, again], env);
    assert.equal(added.code, 0, added.shown);
    assert.match(added.shown, /Password: \r\nRepeat the password: \r\nAdded "ann"\./);
    for (const { shown } of [refused, left, added]) assert.doesNotMatch(shown, /secret/);
    const node = await startServer(t, { env });
    assert.equal((await askLogin(node, 'ann', 'secret black ink')).status, 200);
  });
}

async function firstAuthor(node: Pick<NodeProcess, 'url'>): Promise<unknown> {
  const query = encodeURIComponent('{ allPosts { author { id name email } } }');
  const body = await (await fetch(`${node.url}/graphql?query=${query}`)).json();
  const { data } = body as { readonly data: { readonly allPosts: { author: unknown }[] } };
  return data.allPosts[0]?.author;
}

test('names, addresses and settings that are not valid are one line', async (t) => {
  const usersFile = join(await createDirectory(t), 'users.json');
  await writeFile(usersFile, '[{}]');
  // Before anything is opened.
  const closed = { STORE_URL: 'postgres://127.0.0.1:1/none' };
  const users = { STORE_URL: 'sqlite:///a', USERS_FILE: usersFile };
  for (const [env, email, name, fault, ...more] of [
    [{}, 'a', ' ', /username must be text of 1 to 256/],
    [{}, 'a', 'a\u001b[2J', /username must be text/],
    [{}, 'a\nb', 'ann', /email must be text of 1 to 320/],
    ...['ann', 'ann@', 'a b@example.org', '@example.org'].map(
      (bad) => [closed, bad, 'ann', /is not an email address/] as const,
    ),
    [{}, 'a', 'ann', /roles must be/, '--role', ''],
    [users, 'a@example.org', 'ann', /USERS_FILE: entry 0/],
  ] as const) {
    await fails(here(['add', '--role', 'USER', '--email', email, name, ...more], env), fault);
  }
  await fails(here('list', { STORE_URL: 'mysql://a' }), /STORE_URL must be/);
});

test('arguments that make no command get the usage, 2, and what is wrong with them', async () => {
  const help = await here(['--help'], {});
  assert.deepEqual([help.code, help.errors], [0, '']);
  assert.match(help.output, /^usage: .*12 characters/s);
  for (const [message, lines] of Object.entries({
    'There is no command accounts "".': '',
    'There is no command accounts "ad".': 'ad',
    'There is no command accounts "chang".': 'chang ann',
    'change needs --email or --role.': 'change ann',
    'change takes no --erase.': 'change ann --erase --email a@example.org',
    'add needs a username.': 'add; add --email a@example.org',
    'add needs --email.': 'add ann',
    "Option '--email <value>' argument missing.": 'add ann --email',
    'add takes fewer arguments.': 'add ann secret --email a@example.org',
    "Unknown option '--password'.": 'add ann --email a@example.org --password secret',
    'list takes fewer arguments.': 'list ann',
    "Unknown option '--rolle'.": 'list --rolle A',
    'list takes no --role.': 'list --role A',
    'passwd needs a username.': 'passwd',
    'passwd takes fewer arguments.': 'passwd ann secret',
    'passwd takes no --role.': 'passwd ann --role USER',
    'remove needs a username.': 'remove',
    'remove takes no --email.': 'remove ann --email a@example.org',
    '--posts-to names another account.': 'remove ann --posts-to ann',
    'remove takes fewer arguments.': 'remove ann bob',
    "Unknown option '--force'.": 'remove ann --force',
  })) {
    for (const line of lines.split('; ')) {
      const { code, output, errors } = await here(line === '' ? [] : line, {});
      assert.deepEqual([code, output], [2, ''], line);
      assert.match(errors, /^usage: node dist\/server\.js accounts add <username>/, line);
      assert.equal(errors.trimEnd().split('\n').at(-1), `inkwell: ${message}`, line);
      assert.doesNotMatch(errors, /secret/, line);
    }
  }
  assert.equal((await runCommand(['accounts', 'passwd'], {})).code, 2);
});
