/**
 * Servers as people have them: what `--check` says of each is what a start and the first requests
 * meet. Each row has a database and a role of its own; `--check` says the fault, if there is one.
 */

import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test, type TestContext } from 'node:test';
import { createServer, run } from '../../dist/store/postgres/client/connection.js';
import { isKeyInUse, toStoreError } from '../../dist/store/postgres/client/faults.js';
import { openStore } from '../../dist/store/postgres/open.js';
import { runCommandHere } from '../support/command.ts';
import { driverOptions } from '../support/driver-options.ts';
import { file, form } from '../support/files.ts';
import { isLong } from '../support/long.ts';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { askEvents } from '../support/sse-client.ts';
import { createDirectory } from '../support/uploads.ts';

/** SQL about the role R and the database D, with `;` between statements. */
type Row = readonly [what: string, sql: string, fault?: RegExp];

const set = (text: string): string => text.replaceAll(/^|; ?/g, ';ALTER ROLE R SET ').slice(1);

/** With sessions, and without, where no setting can be changed. */
const settings: readonly Row[] = [
  [
    'values that are written in other ways, and names that mean something else',
    set(`DateStyle = 'SQL, DMY'; IntervalStyle = sql_standard; TimeZone = 'Asia/Kathmandu';
      client_encoding = LATIN1; xmloption = document; array_nulls = off; bytea_output = escape;
      extra_float_digits = -15; quote_all_identifiers = on; standard_conforming_strings = off;
      transform_null_equals = on; search_path = nowhere, ''; row_security = off`),
  ],
  [
    'transactions and plans of another kind',
    set(`default_transaction_isolation = serializable; default_transaction_deferrable = on;
      synchronous_commit = off; jit_above_cost = 0; enable_seqscan = off; lock_timeout = 500;
      plan_cache_mode = force_custom_plan; check_function_bodies = off; statement_timeout = 2000`),
  ],
];

const others: readonly Row[] = [
  [
    'a role that takes the place of another',
    'CREATE ROLE owner; ALTER DATABASE D OWNER TO owner; GRANT owner TO R; ALTER ROLE R SET role = owner',
  ],
  [
    'nothing for PUBLIC',
    `REVOKE ALL ON DATABASE D FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC;
     ALTER DEFAULT PRIVILEGES FOR ROLE R REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
     REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM PUBLIC`,
  ],
  ['a publication of all tables', 'CREATE PUBLICATION p FOR ALL TABLES'],
  ['triggers that do not run', set('session_replication_role = replica'), /null value in column/],
  ['transactions that only read', set('default_transaction_read_only = on'), /takes no writes/],
  [
    'a role that may not create',
    'ALTER DATABASE D OWNER TO inkwell',
    /lacks what .* "migrate"|permission denied for database/,
  ],
  ['a role that may not connect', 'ALTER ROLE R NOLOGIN', /not permitted to log in/],
  [
    'a database that is closed to the role',
    'ALTER DATABASE D OWNER TO inkwell; REVOKE ALL ON DATABASE D FROM PUBLIC',
    /permission denied for database/,
  ],
  ['no room for connections', 'ALTER ROLE R CONNECTION LIMIT 0', /too many connections for role/],
];

const names = { role: `o'ne "r" \u00e9%41`, database: `d "b" ?#/\u00e9%41` };
const password = `p@:/?#[]%41 \u00e9'"\\&=+`;
const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Doors that read and write each table and list, and what came of what did not succeed. */
async function findFailures(t: TestContext, env: Readonly<Record<string, string>>) {
  const server = await startServer(t, { env });
  const failures: string[] = [];
  const ask = async (line: string, body?: object, headers = {}): Promise<string> => {
    const [method = '', path = ''] = line.split(' ');
    const init = { method, headers: { 'Content-Type': 'application/json', ...headers } };
    const response = await server.fetch(
      path,
      body ? { ...init, body: JSON.stringify(body) } : init,
    );
    const text = await response.text();
    if (!response.ok) failures.push(`${line}: ${response.status} ${text}`);
    return response.headers.get('location') ?? text;
  };
  const post = await ask('POST /posts', { title: `o'ne \\ "x"`, content: 'NULL' });
  const first = await ask(`POST ${post}/comments`, { content: 'first' });
  await ask(`POST ${post}/comments`, { content: 'missed' });
  const key = { 'Idempotency-Key': 'key' };
  const keyed = await ask('POST /posts', { title: 'a', content: '{"b",NULL}' }, key);
  assert.equal(await ask('POST /posts', { title: 'a', content: '{"b",NULL}' }, key), keyed);
  await ask(`PUT ${keyed}`, { title: 'a', content: 'c' });
  await ask('POST /api/todos', { title: 'NULL' });
  const patch = [{ op: 'replace', path: '/0/title', value: 'NULL' }];
  await ask('PATCH /api/articles', patch, { 'Content-Type': 'application/json-patch+json' });
  const body = form({ a: file('text', 'NULL') });
  assert.equal((await server.fetch('/api/multiparts/list', { method: 'POST', body })).status, 200);
  const query = '{ allPosts { author { posts { id } } comments { content createdAt } } }';
  assert.doesNotMatch(await ask('POST /graphql', { query }), /"errors"/);
  const lists = ['/posts', '/posts?status=DRAFT', `${post}/comments`, '/api/todos', '/files'];
  for (const path of [...lists, '/api/articles']) {
    await ask(`GET ${path}`);
    await ask(`GET ${path}${path.includes('?') ? '&' : '?'}limit=1`);
  }
  const place = first.split('/').at(-1);
  const reader = await askEvents(
    server,
    `subscription { commentAdded(after: "${place}") { content } }`,
  );
  const nextEvent = async (): Promise<string | undefined> => {
    const event = await reader.next();
    return event?.startsWith(':') === true ? nextEvent() : event;
  };
  assert.match((await nextEvent()) ?? '', /"missed"/);
  await ask(`POST ${post}/comments`, { content: 'live' });
  assert.match((await nextEvent()) ?? '', /"live"/);
  reader.leave();
  await ask(`DELETE ${post}`);
  await ask('DELETE /api/multiparts/NULL');
  await server.stop();
  return failures;
}

test('a server says in its own language that a write waits for its key', () => {
  for (const where of [
    'while inserting index tuple (0,3) in relation "requests_pkey"',
    'beim Einf\u00fcgen von Indextupel (0,3) in Relation \u00bbrequests_pkey\u00ab',
    'lors de l\u2019insertion de l\u2019enregistrement (0,3) dans \u00ab requests_pkey \u00bb',
  ]) {
    const refused = (facts: object) =>
      toStoreError(Object.assign(new Error('x'), { severity: 'FEHLER', code: '57014' }, facts));
    assert.equal(isKeyInUse(refused({ where })), true, where);
    assert.equal(isKeyInUse(refused({ where: where.replace('requests', 'posts') })), false, where);
  }
});

suite('a server with', { skip }, () => {
  let server: PostgresServer;
  let folder: string;
  let count = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inkwell-odd-'));
    await chmod(folder, 0o777);
    const rules = ['local all all trust', 'host all +guarded all scram-sha-256'];
    await writeFile(join(folder, 'hba.conf'), [...rules, 'host all all all trust', ''].join('\n'));
    const given = ['fsync=off', `hba_file=${folder}/hba.conf`, `unix_socket_directories=${folder}`];
    server = await startPostgres(given);
  });
  after(async () => {
    await server.remove();
    await rm(folder, { recursive: true });
  });

  /** A new role and database, with options, and the URL of both. */
  const create = async (sql: string, { role = '', database = '', more = '' } = {}) => {
    count += 1;
    const [R, name] = [role || `role_${count}`, database || `database_${count}`];
    const url = new URL(server.url(encodeURIComponent(name)));
    await server.query(server.url('postgres'), `CREATE ROLE ${quote(R)} LOGIN`);
    const owned = `CREATE DATABASE ${quote(name)} OWNER ${quote(R)} ${more}`;
    await server.query(server.url('postgres'), owned);
    for (const statement of sql.split(';')) {
      const text = statement.replaceAll(/\bR\b/g, quote(R)).replaceAll(/\bD\b/g, quote(name));
      // The package alone would not find one whose name has escapes.
      await server.query(database === '' ? url.href : server.url('postgres'), text);
    }
    return url.href.replace('//inkwell@', `//${encodeURIComponent(R)}@`);
  };

  const judge = async (t: TestContext, url: string, fault?: RegExp): Promise<void> => {
    const env = { STORE_URL: url, UPLOAD_DIR: await createDirectory(t), PORT: '0' };
    const check = () => runCommandHere(['--check'], { env });
    const { code, errors } = await check();
    if (fault === undefined) {
      // What the cache alone asks for may be refused.
      const advice = /^(?:inkwell: responses are not cached: permission denied .*\n)?$/;
      assert.equal(code, 0, errors);
      assert.match(errors, advice);
      assert.deepEqual(await findFailures(t, env), []);
      assert.equal((await check()).code, 0);
      return;
    }
    assert.equal(code, 1);
    assert.match(errors, /^inkwell: STORE_URL: .*\n$/m);
    assert.match(errors, fault);
    const options = { ...driverOptions(), startSeconds: 0, mayCreate: true };
    await assert.rejects(openStore(url, options), fault);
  };

  // What is taken is read and written through many doors: most of it at length.
  const unusual = isLong ? settings : settings.slice(0, 1);
  for (const [what, sql, fault] of [...unusual, ...others.filter((row) => isLong || row[2])])
    test(what, async (t) => judge(t, await create(sql), fault));
  for (const [what, sql] of unusual)
    test(`${what}, without sessions`, async (t) => judge(t, `${await create(sql)}?prepare=false`));

  test('an end for idle sessions, which is not that of a node', async () => {
    const url = await create(set('idle_session_timeout = 60000'));
    const connection = await (await createServer(url)).connect({ statementSeconds: 5 });
    const [row] = await run(connection, { text: 'SHOW idle_session_timeout', values: [] });
    connection.end();
    assert.deepEqual(row, { idle_session_timeout: '0' });
  });

  test('fewer connections than a node takes, which a start survives', async (t) => {
    for (const limited of ['ALTER ROLE R', 'ALTER DATABASE D']) {
      const STORE_URL = await create(`${limited} CONNECTION LIMIT 10`);
      const check = (env = {}) => runCommandHere(['--check'], { env: { STORE_URL, ...env } });
      const { code, errors } = await check({ PORT: '0' });
      const reason = 'a node takes 11 connections, and may have 10: lower STORE_CONNECTIONS_MAX.';
      assert.deepEqual([code, errors], [1, `inkwell: STORE_URL: ${reason}\n`]);
      assert.equal((await check({ PORT: '0', STORE_CONNECTIONS_MAX: '9' })).code, 0);
      const { logged } = await startServer(t, { env: { STORE_URL } });
      assert.ok(logged.some((record) => record['reason'] === reason));
    }
  });

  for (const encoding of ['LATIN1', 'SQL_ASCII']) {
    test(`the encoding ${encoding}, which is left empty`, async (t) => {
      const more = `ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`;
      const url = await create('', { more });
      await judge(t, url, new RegExp(`is ${encoding}, and has to be UTF8: CREATE DATABASE name`));
      const schemas = "SELECT FROM pg_namespace WHERE nspname = 'inkwell'";
      assert.deepEqual(await server.query(url, schemas), []);
    });
  }

  const icu = `TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE'`;
  for (const more of isLong ? ["TEMPLATE template0 LOCALE 'C'", icu] : [icu])
    test(more, async (t) => judge(t, await create('', { more })));

  test('names and a password of every character', async (t) => {
    const sql = `CREATE ROLE guarded; GRANT guarded TO R;
      ALTER ROLE R PASSWORD '${password.replaceAll("'", "''")}'`;
    const url = await create(sql, names);
    const secret = encodeURIComponent(password);
    await judge(t, url.replace('@127', `:${secret}@127`));
    await judge(t, url.replace('@127', `:x${secret}@127`), /password authentication failed/);
  });

  test('a socket of Unix', async (t) => {
    const url = await create('');
    await judge(t, url.replace(/127.0.0.1:(\d+)(.*)/, `$2?host=${folder}&port=$1`));
  });
});
