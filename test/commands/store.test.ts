/** `node dist/server.js backup` and `migrate`, beside a server that runs on the same store. */

import assert from 'node:assert/strict';
import { statSync, watch } from 'node:fs';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { type Ended, fails, runCommand, runCommandHere } from '../support/command.ts';
import { type NodeProcess, startNode } from '../support/program.ts';
import { skipPostgres } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';
import { until } from '../support/until.ts';

const run = (args: readonly string[], url: string): Promise<Ended> =>
  runCommand(args, { env: { STORE_URL: url } });
const here = (args: readonly string[], url: string): Promise<Ended> =>
  runCommandHere(args, { env: { STORE_URL: url } });

function post(url: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function addPost(node: Pick<NodeProcess, 'url'>, title: string): Promise<string> {
  const response = await post(`${node.url}/posts`, { title, content: 'a text' });
  assert.equal(response.status, 201);
  return response.headers.get('location')?.split('/').at(-1) ?? '';
}

/** The oldest one first. */
async function list(node: Pick<NodeProcess, 'url'>): Promise<readonly { readonly id: string }[]> {
  const posts = (await (await fetch(`${node.url}/posts`)).json()) as { id: string }[];
  return posts.toReversed();
}

describe('backup of SQLite', { skip: skipSqlite }, () => {
  it('has what was acknowledged before it, under steady writes, and serves it', async (t) => {
    const path = await newSqliteFile(t);
    const node = await startNode(t, { STORE_URL: toSqliteUrl(path) });
    const first = await list(node);
    const ending = new AbortController();
    t.after(() => ending.abort());
    const write = async (): Promise<void> => {
      while (!ending.signal.aborted) await addPost(node, 'a post');
    };
    const acknowledged: string[] = [];
    for (let at = 0; at < 50; at += 1) acknowledged.push(await addPost(node, `early ${at}`));
    const writers = [1, 2, 3].map(write);
    const copy = join(dirname(path), 'copy of it.db');
    const earlier = await list(node);
    const said = `The store is in ${JSON.stringify(copy)}.\n`;
    const done = await run(['backup', copy], toSqliteUrl(path));
    assert.deepEqual(done, { code: 0, output: said, errors: '' });
    const later = await addPost(node, 'later');
    ending.abort();
    await Promise.all(writers);

    const second = await startNode(t, { STORE_URL: toSqliteUrl(copy) });
    const kept = await list(second);
    assert.ok(earlier.length >= first.length + 50);
    // In the same order, from the first one on: a state that there was.
    assert.deepEqual(kept.slice(0, earlier.length), earlier);
    const all = await list(node);
    assert.deepEqual(kept, all.slice(0, kept.length));
    const ids = new Set(kept.map(({ id }) => id));
    for (const id of acknowledged) assert.ok(ids.has(id), id);
    assert.ok(!ids.has(later));
    // A server can go on from it.
    const next = await addPost(second, 'next');
    assert.equal((await list(second)).at(-1)?.id, next);
  });

  it('is whole, private, alone in its folder, and replaces nothing', async (t) => {
    const path = await newSqliteFile(t);
    const url = toSqliteUrl(path);
    assert.equal((await here(['migrate'], url)).code, 0);
    const folder = dirname(path);
    const copy = join(folder, 'copy.db');
    assert.equal((await here(['backup', copy], url)).code, 0);
    assert.equal((await stat(copy)).mode & 0o777, 0o600);
    const checked = inSqlite(copy, (file) => file.prepare('PRAGMA integrity_check').all());
    assert.deepEqual(checked[0], { __proto__: null, integrity_check: 'ok' });
    assert.deepEqual((await readdir(folder)).toSorted(), ['copy.db', 'in k%.db']);

    await writeFile(join(folder, 'mine'), 'precious');
    const taken = here(['backup', join(folder, 'mine')], url);
    await fails(taken, /mine cannot be made \(EEXIST\): .*give another name/);
    assert.equal(await readFile(join(folder, 'mine'), 'utf8'), 'precious');
    // An earlier run that was killed has left it.
    await writeFile(join(folder, 'other.partial'), 'half a copy');
    assert.equal((await here(['backup', join(folder, 'other')], url)).code, 0);
    assert.equal((await stat(join(folder, 'other'))).mode & 0o777, 0o600);
    await fails(here(['backup', join(folder, 'no', 'copy')], url), /cannot be made \(ENOENT\)/);
    const names = ['copy.db', 'in k%.db', 'mine', 'other'];
    assert.deepEqual((await readdir(folder)).toSorted(), names);
  });

  it('has its name when it is whole, and not before', async (t) => {
    const path = await newSqliteFile(t);
    const url = toSqliteUrl(path);
    assert.equal((await here(['migrate'], url)).code, 0);
    inSqlite(path, (file) =>
      file.exec(`WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many LIMIT 200)
        INSERT INTO todos (id, title, completed)
        SELECT at, hex(zeroblob(100000)), 0 FROM many`),
    );
    const copy = join(dirname(path), 'copy.db');
    const watcher = watch(dirname(path));
    const names = new Set<string | null>();
    let size = 0;
    watcher.on('change', (_kind, name) => {
      if (name === 'copy.db' && size === 0) size = statSync(copy).size;
      names.add(String(name));
    });
    t.after(() => watcher.close());
    const backup = await run(['backup', copy], url);
    assert.equal(backup.code, 0, backup.errors);
    await until('the copy is seen', () => names.has('copy.db'));
    assert.ok(names.has('copy.db.partial'));
    assert.equal(size, (await stat(copy)).size);
  });
});

describe('migrate on PostgreSQL', { skip: skipPostgres }, () => {
  it('waits for a database that is not there yet, and says so', async () => {
    const url = await database.emptyDatabase();
    await database.stop();
    let said = '';
    const onErrors = (text: string): void => void (said += text);
    const migrating = runCommand(['migrate'], { env: { STORE_URL: url }, onErrors });
    await Promise.race([until('a message on the standard error', () => said !== ''), migrating]);
    await database.start();
    const { code, errors } = await migrating;
    assert.equal(code, 0);
    assert.match(errors, /^inkwell: waiting for the database: 127\.0\.0\.1:\d+: /);
  });

  it('makes what a role that may only read and write needs to serve', async (t) => {
    const url = await database.emptyDatabase();
    await database.query(url, 'CREATE ROLE serving LOGIN');
    const serving = url.replace('inkwell@', 'serving@');
    await fails(here(['migrate'], serving), /STORE_URL: .*permission denied/);
    const done = { code: 0, output: 'The tables of the store fit this version.\n', errors: '' };
    assert.deepEqual(await run(['migrate'], url), done);
    for (const grant of [
      'GRANT USAGE ON SCHEMA inkwell TO serving',
      'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA inkwell TO serving',
      'GRANT SELECT ON ALL SEQUENCES IN SCHEMA inkwell TO serving',
    ]) {
      await database.query(url, grant);
    }
    const files = await newSqliteFile(t);
    const node = await startNode(t, { STORE_URL: serving, UPLOAD_DIR: dirname(files) });
    const id = await addPost(node, 'by a role that may not create');
    assert.equal((await list(node)).at(-1)?.id, id);
    const comments = `${node.url}/posts/${id}/comments`;
    assert.equal((await post(comments, { content: 'so is this' })).status, 201);
    const form = new FormData();
    form.append('part', new Blob(['text']), 'a.txt');
    const upload = { method: 'POST', body: form };
    assert.equal((await fetch(`${node.url}/api/multiparts/simple`, upload)).status, 200);
    assert.deepEqual(await here(['migrate'], serving), done);
    assert.deepEqual(await here(['migrate'], url), done);
    assert.equal((await fetch(`${node.url}/readyz`)).status, 200);
  });
});
