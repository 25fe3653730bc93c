/** The tables in PostgreSQL: made, brought up to date, refused, and checked before that. */

import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Log } from '../../dist/log.js';
import { openAccounts, openStore } from '../../dist/store/open.js';
import { fails, runCommandHere } from '../support/command.ts';
import { driverOptions } from '../support/driver-options.ts';
import { allOf } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { database, sharePostgres } from '../support/shared-postgres.ts';
import { openOn } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';

test(
  'a database of the first version is brought up to date, not filled again',
  { skip },
  async (t) => {
    const url = await database.emptyDatabase();
    const first = await openOn(t, url);
    await first.posts.remove(driverOptions().initial.posts[0]?.id ?? '');
    await first.close();
    const kept =
      "('posts', 'comments', 'authors', 'todos', 'articles', 'counters', 'schema_state')";
    await database.query(
      url,
      `DO $$ DECLARE name text; BEGIN
       FOR name IN SELECT tablename FROM pg_tables
         WHERE schemaname = 'inkwell' AND tablename NOT IN ${kept}
       LOOP
         EXECUTE 'DROP TABLE inkwell.' || name;
       END LOOP;
     END $$;
     ALTER TABLE inkwell.comments DROP COLUMN timeline;
     ALTER TABLE inkwell.schema_state DROP COLUMN usable_from;
     DROP INDEX inkwell.posts_of_status, inkwell.posts_of_author_status;
     UPDATE inkwell.schema_state SET version = 1`,
    );
    const logged: unknown[] = [];
    const log: Log = (level, event, facts) => void logged.push([level, event, facts?.['from']]);
    const options = { ...driverOptions({ log }), startSeconds: 5, mayCreate: true };
    const opened = await openAccounts(url, options);
    assert.deepEqual(await opened.accounts.list(), []);
    assert.deepEqual(logged, [['info', 'schema migrated', 1]]);
    await opened.close();
    const second = await openOn(t, url);
    assert.equal((await allOf(second.posts.all)).length, 2);
  },
);

test('a database that a newer version made is refused if that says so', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  await (await openOn(t, url)).close();
  await database.query(url, 'UPDATE inkwell.schema_state SET version = 1000');
  // Its steps only added to the tables: the writes since then are kept by going back.
  await (await openOn(t, url)).close();
  await database.query(url, 'UPDATE inkwell.schema_state SET usable_from = 1000');
  await assert.rejects(openStore(url, driverOptions()), {
    message: 'STORE_URL: the database was written by a newer version of this program.',
  });
});

for (const encoding of ['LATIN1', 'SQL_ASCII']) {
  test(`a database is refused, and left empty, where it is ${encoding}`, { skip }, async () => {
    const server = await sharePostgres();
    const name = encoding.toLowerCase();
    const make = `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`;
    await server.query(server.url('postgres'), make);
    await assert.rejects(openStore(server.url(name), driverOptions()), {
      message:
        `STORE_URL: the encoding of the database is ${encoding}, and has to be UTF8: ` +
        "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0.",
    });
    const schemas = "SELECT FROM pg_namespace WHERE nspname = 'inkwell'";
    assert.deepEqual(await server.query(server.url(name), schemas), []);
  });
}

test('--check refuses what a start would, and changes nothing', { skip }, async (t) => {
  const url = await database.createDatabase();
  const folder = await createDirectory(t);
  const of = (role: string): string => url.replace('inkwell@', `${role}@`);
  const check = (STORE_URL: string, UPLOAD_DIR = '') =>
    runCommandHere(['--check'], { env: { PORT: '0', STORE_URL, UPLOAD_DIR } });
  await database.query(url, 'CREATE ROLE plain LOGIN');
  await fails(check(of('plain')), /STORE_URL: the role lacks what the command "migrate" needs\.$/m);
  assert.equal((await check(url, folder)).code, 0);
  const made = "SELECT FROM pg_namespace WHERE nspname = 'inkwell'";
  assert.deepEqual(await database.query(url, made), []);

  const service = await startServer(t, { env: { STORE_URL: url, UPLOAD_DIR: folder } });
  await service.stop();
  assert.equal((await check(url, folder)).code, 0);
  await fails(check(of('plain')), /STORE_URL: .* permission denied for schema inkwell/);
  await database.query(
    url,
    `GRANT USAGE ON SCHEMA inkwell TO plain;
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA inkwell TO plain`,
  );
  await fails(check(of('plain')), /STORE_URL: the role lacks SELECT on inkwell\.\w+_seq\.$/m);
  await database.query(url, 'GRANT SELECT ON ALL SEQUENCES IN SCHEMA inkwell TO plain');
  assert.equal((await check(of('plain'), folder)).code, 0);
  await database.query(url, 'REVOKE DELETE ON inkwell.todos FROM plain');
  await fails(check(of('plain')), /STORE_URL: the role lacks DELETE on inkwell\.todos\.$/m);

  await writeFile(join(folder, 'inkwell-files/id'), 'another');
  await fails(check(url, folder), /UPLOAD_DIR: .* is not the folder of this database/);
  await rm(join(folder, 'inkwell-files'), { recursive: true });
  await fails(check(url, folder), /UPLOAD_DIR: .* is not the folder of this database/);
  await database.query(url, 'DELETE FROM inkwell.upload_folder');
  assert.equal((await check(url, folder)).code, 0);
  await mkdir(join(folder, 'inkwell-files'));
  await writeFile(join(folder, 'inkwell-files/1.upload'), 'x');
  await fails(check(url, folder), /UPLOAD_DIR: the database of STORE_URL lists no file/);

  await database.query(url, 'UPDATE inkwell.schema_state SET version = 1000, usable_from = 1000');
  await fails(check(url), /STORE_URL: the database was written by a newer version/);
  await database.query(url, 'DROP OWNED BY plain CASCADE; DROP ROLE plain');
});

test('a new database has no tables of older builds', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  await (await openOn(t, url)).close();
  const tables = "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'inkwell' ORDER BY 1";
  const names = (await database.query(url, tables)).map(({ name }) => name);
  assert.deepEqual(
    names.join(' '),
    'accounts article_turn articles authors comments counters files posts requests schema_state todos upload_folder',
  );
});
