/** `--check`: what it says, what it finds, and that it leaves nothing behind. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { runCommandHere } from '../support/command.ts';
import { skipPostgres } from '../support/postgres.ts';
import { runProgram } from '../support/program.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite, openInSqlite, skipSqlite } from '../support/sqlite.ts';
import { createDirectory } from '../support/uploads.ts';

type Env = Readonly<Record<string, string>>;
const local = { PORT: '0', HOST: '127.0.0.1' };

const check = (env: Env) => runCommandHere(['--check'], { env: { ...local, ...env } });

/** Of each cause the code and the line. */
async function finds(causes: readonly (readonly [Env, RegExp])[]): Promise<void> {
  for (const [env, fault] of causes) {
    const { code, output, errors } = await check(env);
    assert.deepEqual([code, output], [1, ''], errors);
    assert.match(errors, fault);
    assert.doesNotMatch(errors, /hidden/);
  }
}

async function freePort(t: TestContext): Promise<number> {
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port; // it listens on TCP
}

describe('--check', { concurrency: true }, () => {
  it('says who may do what, what is kept, and what is lost', async (t) => {
    const folder = await createDirectory(t);
    const USERS_FILE = join(folder, 'users.json');
    await writeFile(USERS_FILE, '[]');
    const production = { NODE_ENV: 'production', USERS_FILE, JWT_SECRET: 'x'.repeat(40) };
    const closed = { ...production, REQUIRE_AUTH: 'owners', DEMO_DATA: 'false' };
    const anybody = { COMMENTS: 'open', COMMENTS_PER_MINUTE_MAX: '7' };
    const perMinute = 'everybody comments, without a token 7 times a minute from one address';
    for (const [env, ...lines] of [
      [{ HOST: '::1', ADMIN_PORT: '0' }, 'listens on port 0 of ::1, health and metrics on port 0'],
      [{}, 'everybody reads, changes and comments everything, drafts too'],
      [{ REQUIRE_AUTH: 'writes' }, 'everybody reads everything, drafts too'],
      [
        { REQUIRE_AUTH: 'owners' },
        'everybody reads what is published; drafts are for their authors and ADMIN',
      ],
      [{ REQUIRE_AUTH: 'members' }, 'posts and files are changed by their authors and ADMIN'],
      [{ REQUIRE_AUTH: 'owners', ...anybody }, perMinute],
      [
        { REQUIRE_AUTH: 'writes', COMMENTS: 'moderated' },
        'a comment waits until ADMIN or the author of its post approves it',
      ],
      [{}, 'kept at a restart: nothing; lost: records, files, tokens'],
      [{ DATABASE_URL: 'postgres://a' }, 'DATABASE_URL is not read: set STORE_URL to it.'],
      [{ UPLOAD_DIR: folder }, 'UPLOAD_DIR keeps no files without STORE_URL.'],
      [
        closed,
        'STORE_URL is not set: all records are lost when this process ends.',
        'There is no account, so that nobody can log in: add one with "accounts add".',
      ],
    ] as const) {
      const { code, output, errors } = await check(env);
      assert.equal(code, 0, errors);
      for (const line of lines) assert.ok(output.split('\n').includes(line), `${line}\n${output}`);
    }
  });

  it('finds every fault of settings, folders and ports, a line each', async (t) => {
    const folder = await createDirectory(t);
    const file = join(folder, 'file');
    await writeFile(file, 'x');
    const port = `${await freePort(t)}`;
    await finds([
      [{ PORT: 'x' }, /^inkwell: PORT must .*\n$/],
      [{ USERS_FILE: '/nowhere' }, /^inkwell: USERS_FILE "\/nowhere" cannot be read: ENOENT\.\n$/],
      [
        { UPLOAD_DIR: join(folder, 'no') },
        /UPLOAD_DIR: no file .*ENOENT\): create it, or .* its name\.\n$/,
      ],
      [{ UPLOAD_DIR: file }, /UPLOAD_DIR: no file .* \(ENOTDIR\): it is not a folder\.\n$/],
      [{ PORT: port }, /PORT: .* \(EADDRINUSE\): another program uses it\.\n$/],
      [{ ADMIN_PORT: port }, /ADMIN_PORT: .* \(EADDRINUSE\)/],
      [{ HOST: '192.0.2.1' }, /PORT: .* \(EADDRNOTAVAIL\): HOST is no address of this machine/],
      [{ STORE_URL: 'postgres://ann:hidden@127.0.0.1:1/ink' }, /STORE_URL: .* does not answer/],
      [
        { PORT: port, UPLOAD_DIR: file, USERS_FILE: '/nowhere' },
        /^inkwell: USERS_FILE.*\ninkwell: UPLOAD_DIR.*\ninkwell: PORT.*\n$/,
      ],
    ]);
    assert.deepEqual(await readdir(folder), ['file']);
  });

  it(
    'finds every fault of a SQLite file, and leaves it as it is',
    { skip: skipSqlite },
    async (t) => {
      const folder = await createDirectory(t);
      const path = (name: string): string => join(folder, name);
      const url = (name: string): Env => {
        return { STORE_URL: `sqlite://${path(name)}`, UPLOAD_DIR: folder };
      };
      await writeFile(path('text'), 'no database, but long enough to be taken for one');
      inSqlite(path('other'), (other) => other.exec('CREATE TABLE a (b)'));
      for (const name of ['damaged', 'held', 'newer']) {
        assert.equal((await runCommandHere(['migrate'], { env: url(name) })).code, 0);
      }
      inSqlite(path('newer'), (newer) => newer.exec('PRAGMA user_version = 999'));
      const damaged = await open(path('damaged'), 'r+');
      await damaged.write(Buffer.alloc(20 * 4096, 0xff), 0, 20 * 4096, 4096);
      await damaged.close();
      await mkdir(path('folder'));
      const held = openInSqlite(path('held'));
      held.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
      await finds([
        [url('held'), /STORE_URL: another program holds the file: .*\n$/],
        [url('no/x.db'), /STORE_URL: no file .* \(ENOENT\): create it, or correct its name\.\n$/],
        [url('text'), /STORE_URL: the file is not an SQLite database/],
        [url('other'), /STORE_URL: the file belongs to another program\.\n$/],
        [url('newer'), /STORE_URL: the file was written by a newer version/],
        [url('damaged'), /STORE_URL: the file is damaged: restore a backup/],
        [url('folder'), /STORE_URL: .*\(EISDIR\): it is a folder: name a file in it\.\n$/],
        [url('x.db?mode=rwc'), /STORE_URL: a path has no parameters\. Write .* # as %23\.\n$/],
        [url('x#y.db'), /STORE_URL: a path has no parameters/],
        [url('x%00y.db'), /STORE_URL: no path has a zero byte \(%00\)\.\n$/],
        [url('x%zz.db'), /STORE_URL: the path holds a % that encodes nothing/],
      ]);
      held.close();
      const names = ['damaged', 'folder', 'held', 'newer', 'other', 'text'];
      assert.deepEqual((await readdir(folder)).toSorted(), names);
      for (const name of ['new.db', 'a%3Fb%23c%20d%25.db'])
        assert.deepEqual((await check(url(name))).code, 0, name);
      assert.deepEqual((await readdir(folder)).toSorted(), names);
    },
  );

  it('works beside a running node, and says that it runs', { skip: skipSqlite }, async (t) => {
    const folder = await createDirectory(t);
    const env = { STORE_URL: `sqlite://${join(folder, 'x.db')}`, UPLOAD_DIR: folder };
    const node = await runProgram(t, { env });
    const { port, url } = await node.listening();
    const posts = await (await fetch(`${url}/posts`)).text();
    const { code, output, errors } = await check({ ...env, PORT: `${port}` });
    assert.equal(code, 0, errors);
    assert.match(output, /^kept at a restart: records, files; lost: tokens$/m);
    assert.match(output, new RegExp(`^a node runs on port ${port}: `, 'm'));
    assert.equal(await (await fetch(`${url}/posts`)).text(), posts);
    assert.match(await readFile(join(folder, 'inkwell-files', 'id'), 'utf8'), /./);
  });
});

describe('--check on PostgreSQL', { skip: skipPostgres }, () => {
  it('finds what a role or a database does not do, and changes nothing', async (t) => {
    const url = await database.emptyDatabase();
    const folder = await createDirectory(t);
    const ok = await check({ STORE_URL: url, UPLOAD_DIR: folder });
    assert.equal(ok.code, 0, ok.errors);
    await database.query(url, 'CREATE ROLE checked LOGIN');
    await database.query(url, 'CREATE ROLE reading LOGIN');
    await database.query(url, 'ALTER ROLE reading SET default_transaction_read_only = on');
    const as = (role: string): Env => ({ STORE_URL: url.replace('inkwell@', `${role}@`) });
    await finds([[as('checked'), /STORE_URL: the role lacks what the command "migrate" needs/]]);
    assert.equal((await runCommandHere(['migrate'], { env: { STORE_URL: url } })).code, 0);
    for (const grant of [
      'GRANT USAGE ON SCHEMA inkwell TO checked, reading',
      'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA inkwell TO reading, checked',
      'GRANT SELECT ON ALL SEQUENCES IN SCHEMA inkwell TO reading, checked',
      'REVOKE INSERT ON inkwell.todos FROM checked',
    ]) {
      await database.query(url, grant);
    }
    await finds([
      [as('checked'), /STORE_URL: the role lacks INSERT on inkwell\.todos/],
      [as('reading'), /STORE_URL: .* takes no writes: .*read-only/],
      [as('nobody'), /STORE_URL: .*role "nobody" does not exist/],
      [{ STORE_URL: `${url}-no` }, /STORE_URL: .*database ".*-no" does not exist/],
      [
        { STORE_URL: url, STORE_LISTEN_URL: 'postgres://127.0.0.1:1/a' },
        /STORE_LISTEN_URL: the database at 127\.0\.0\.1:1 sends no notifications/,
      ],
      [
        { STORE_URL: url, STORE_LISTEN_URL: url.replace(/[^/]+$/, 'postgres') },
        /STORE_LISTEN_URL: the database at .* is not that of STORE_URL\.\n$/,
      ],
      [
        { STORE_URL: url, STORE_LISTEN_URL: 'postgres://hidden@h/a?sslMode=require' },
        /STORE_LISTEN_URL: it has the parameter sslMode, which is unknown\.\n$/,
      ],
    ]);
    await database.query(url, 'REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM PUBLIC');
    await database.query(url, 'GRANT INSERT ON inkwell.todos TO checked');
    const warned = await check(as('checked'));
    assert.deepEqual([warned.code, /responses are not cached/.test(warned.errors)], [0, true]);
    await database.query(url, "ALTER TABLE inkwell.posts ADD CHECK (title <> '-')");
    await finds([[{ STORE_URL: url }, /STORE_URL: PostgreSQL refused .*violates check/]]);
    const rows = await database.query(url, 'SELECT count(*) AS count FROM inkwell.posts');
    assert.equal(Number((rows as { count: string }[])[0]?.count), 0);
  });
});
