/** `node dist/server.js accounts …`, beside a server that runs on the same store. */

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { type Env, fails, here, succeeds } from '../support/accounts-command.js';
import { type Ended, runAtTerminal, runCommand, skipTerminal } from '../support/command.js';
import { askLogin, askProfile, logIn } from '../support/login.js';
import { type NodeProcess, startNode } from '../support/program.js';
import { type PostgresServer, skipPostgres } from '../support/postgres.js';
import { sharePostgres } from '../support/shared-postgres.js';
import { startServer } from '../support/server.js';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';

/** A server on the same store. */
type Node = Pick<NodeProcess, 'url'>;

/** As a process of its own. */
const accounts = (args: string, env: Env, input = ''): Promise<Ended> =>
  runCommand(['accounts', ...args.split(' ')], { env, input });

describe('on SQLite', { skip: skipSqlite }, () => {
  describeCommand(async (context) => toSqliteUrl(await newSqliteFile(context)));

  it('a file that is not there is created by `add` alone', async (t) => {
    const path = await newSqliteFile(t);
    const env = { STORE_URL: toSqliteUrl(path) };
    for (const args of ['list', 'passwd ann', 'remove ann']) {
      await fails(
        here(args, env, 'a jar of black ink\n'),
        /STORE_URL: .*cannot be opened \(ENOENT/,
      );
    }
    assert.deepEqual(await readdir(dirname(path)), []);
  });

  it('an account can be there before the first start, and nothing else is then', async (t) => {
    const path = await newSqliteFile(t);
    const env = { STORE_URL: toSqliteUrl(path), NODE_ENV: 'production' };
    await succeeds(
      here('add ann --email a@example.org', env, 'a jar of black ink\n'),
      'Added "ann".\n',
    );
    const count = (table: string): unknown =>
      inSqlite(path, (file) => file.prepare(`SELECT count(*) AS n FROM ${table}`).all()[0]?.['n']);
    assert.deepEqual(['posts', 'todos', 'articles'].map(count), [0, 0, 0]);
    const node = await startNode(t, env);
    assert.deepEqual(['posts', 'todos', 'articles'].map(count), [3, 3, 2]);
    assert.equal((await askLogin(node, 'ann', 'a jar of black ink')).status, 200);
  });
});

describe('on PostgreSQL', { skip: skipPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await sharePostgres();
  });

  describeCommand(() => server.clearedDatabase());

  it('a database that is away, or that is not there, is one line', async () => {
    const url = await server.emptyDatabase();
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
    const adding = accounts(
      'add ann --email ann@example.org --role USER --role A',
      env,
      'a jar of black ink\n',
    );
    assert.deepEqual(await adding, { code: 0, output: 'Added "ann".\n', errors: '' });
    const token = await logIn(node, 'ann', 'a jar of black ink');
    const found = await (await askProfile(node, `Bearer ${token}`)).json();
    const { id, ...rest } = found as Record<string, unknown>;
    assert.deepEqual(rest, { username: 'ann', email: 'ann@example.org', roles: ['USER', 'A'] });

    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const body = JSON.stringify({
      query: 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }',
    });
    assert.equal(
      (await fetch(`${node.url}/graphql`, { method: 'POST', headers, body })).status,
      200,
    );
    assert.deepEqual(await firstAuthor(node), { id, name: 'ann', email: 'ann@example.org' });

    await succeeds(
      here('passwd ann', env, 'a jar of blue blots\n'),
      'Changed the password of "ann".\n',
    );
    assert.equal((await askLogin(node, 'ann', 'a jar of black ink')).status, 401);
    assert.equal((await askLogin(node, 'ann', 'a jar of blue blots')).status, 200);
    assert.equal((await askProfile(node, `Bearer ${token}`)).status, 200);

    await succeeds(here('remove ann', env), 'Removed "ann".\n');
    assert.equal((await askProfile(node, `Bearer ${token}`)).status, 401);
    assert.equal((await askLogin(node, 'ann', 'a jar of blue blots')).status, 401);
    assert.deepEqual(await firstAuthor(node), { id, name: 'ann', email: 'ann@example.org' });
    assert.equal((await askLogin(node, 'user', 'password')).status, 200);
  });

  it('lists what is kept by name, and no hash', async (t) => {
    const env = { STORE_URL: await newUrl(t) };
    await succeeds(
      here('add bob --email b@example.org', env, 'a jar of black ink'),
      'Added "bob".\n',
    );
    const adding = here(
      'add ann --role USER --email a@example.org --role B',
      env,
      'a jar of black ink',
    );
    await succeeds(adding, 'Added "ann".\n');
    await succeeds(here('list', env), 'ann\ta@example.org\tUSER,B\nbob\tb@example.org\t\n');
  });

  it('adds one of two that come at once, and tells the other', async (t) => {
    const env = { STORE_URL: await newUrl(t) };
    const ended = await Promise.all(
      ['1', '2', '3'].map((n) =>
        here(`add ann --email ${n}@example.org`, env, `a jar of black ink${n}\n`),
      ),
    );
    const [won, ...others] = ended.toSorted((a, b) => Number(a.code) - Number(b.code));
    assert.deepEqual(won, { code: 0, output: 'Added "ann".\n', errors: '' });
    for (const other of others) {
      const errors = 'inkwell: An account "ann" already exists.\n';
      assert.deepEqual(other, { code: 1, output: '', errors });
    }
    const { output } = await here('list', env);
    assert.equal(output, `ann\t${ended.indexOf(won as Ended) + 1}@example.org\t\n`);
  });

  it('refuses what cannot be, with one line, and changes nothing', async (t) => {
    const env = { STORE_URL: await newUrl(t) };
    await here('add ann --email ann@example.org', env, 'a jar of black ink\n');
    const [one, other] = ['add ann --email x@example.org', 'add bob --email x@example.org'];
    await fails(here(one, env, 'a jar of black ink\n'), /"ann" already exists/);
    await fails(
      here('add user --email x@example.org', env, 'a jar of black ink\n'),
      /"user" is a demo acc/,
    );
    await fails(here(other, env), /No password was given/);
    await fails(here(other, env, '\n'), /must not be empty/);
    await fails(here('passwd bob', env, 'a jar of black ink\n'), /has no account "bob"/);
    await fails(here('passwd ann', env, 'x'.repeat(2_000)), /at most 1024 bytes/);
    await fails(here('passwd ann', env, 'eleven char'), /at least 12 characters/);
    await fails(here('add long-username --email a@b', env, 'Long-Username'), /must differ from/);
    await fails(here('remove user', env), /has no account "user"/);
    await succeeds(here('list', env), 'ann\tann@example.org\t\n');
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
    const added = await runAtTerminal(
      add,
      [first, { ...first, question: 'Repeat the password: ' }],
      env,
    );
    assert.equal(added.code, 0, added.shown);
    assert.match(added.shown, /Password: \r\nRepeat the password: \r\nAdded "ann"\./);
    for (const { shown } of [refused, left, added]) assert.doesNotMatch(shown, /secret/);
    const node = await startServer(t, { env });
    assert.equal((await askLogin(node, 'ann', 'secret black ink')).status, 200);
  });
}

async function firstAuthor(node: Node): Promise<unknown> {
  const query = encodeURIComponent('{ allPosts { author { id name email } } }');
  const body = await (await fetch(`${node.url}/graphql?query=${query}`)).json();
  const { data } = body as { readonly data: { readonly allPosts: { author: unknown }[] } };
  return data.allPosts[0]?.author;
}
