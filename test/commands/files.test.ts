/** `node dist/server.js files`, beside a server that runs on the same store and folder. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import type { OpenedAccounts } from '../../dist/store/driver.js';
import { openUploadFolder, removeOrphans } from '../../dist/store/files/open.js';
import { openAccounts } from '../../dist/store/open.js';
import { fails, succeeds, type Env } from '../support/accounts-command.js';
import { type Ended, runCommand, runCommandHere } from '../support/command.js';
import { type PostgresServer, skipPostgres } from '../support/postgres.js';
import { sharePostgres } from '../support/shared-postgres.js';
import { startServer, type TestServer } from '../support/server.js';
import { newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';
import { createDirectory } from '../support/uploads.js';

const here = (args: readonly string[], env: Env): Promise<Ended> =>
  runCommandHere(['files', ...args], { env });

describe('on SQLite', { skip: skipSqlite }, () => {
  describeFiles(async (context) => toSqliteUrl(await newSqliteFile(context)));
});

describe('on PostgreSQL', { skip: skipPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await sharePostgres();
  });
  describeFiles(() => server.clearedDatabase());
});

describe('files', () => {
  it('needs a durable store and a folder', { skip: skipSqlite }, async (t) => {
    const env = { STORE_URL: toSqliteUrl(await newSqliteFile(t)) };
    await fails(here([], {}), /STORE_URL: a store in memory keeps nothing/);
    await fails(here([], env), /UPLOAD_DIR: without it, files go with their run/);
    const directory = await createDirectory(t);
    await fails(here([], { ...env, UPLOAD_DIR: directory }), /ENOENT/);
  });

  it('shows its usage', async () => {
    const { code, output } = await here(['--help'], {});
    assert.equal(code, 0);
    assert.match(output, /^usage: node dist\/server\.js files \[--remove\]/);
    for (const args of [['--delete'], ['a'], ['--remove', 'a']]) {
      assert.deepEqual(await here(args, {}), { code: 2, output: '', errors: output });
    }
  });
});

function describeFiles(newUrl: (context: TestContext) => Promise<string>): void {
  it('lists files without an entry and entries without a file, and removes the former', async (t) => {
    const { server, env, folder } = await start(t, newUrl);
    await upload(server, 'a.txt');
    // It waits as replaced.
    await upload(server, 'a.txt');
    await upload(server, 'lost.txt');
    for (const name of await readdir(folder)) await age(folder, name);
    const [orphan, young] = [`${randomUUID()}.upload`, `${randomUUID()}.upload`];
    for (const name of [orphan, young, 'mine.txt']) await writeFile(join(folder, name), 'x');
    for (const name of [orphan, 'mine.txt']) await age(folder, name);
    const lost = await diskName(env, 'lost.txt');
    await rm(join(folder, lost));

    const missing = `entry without a file\tlost.txt (${lost})\n`;
    await succeeds(here([], env), `file without an entry\t${orphan}\n${missing}`);
    const names = await readdir(folder);
    assert.equal(names.length, 5);
    const removing = runCommand(['files', '--remove'], { env });
    await succeeds(removing, `removed\t${orphan}\n${missing}`);
    assert.deepEqual(
      (await readdir(folder)).toSorted(),
      names.filter((name) => name !== orphan).toSorted(),
    );
    await succeeds(here(['--remove'], env), missing);
    assert.equal((await server.fetch('/api/multiparts/a.txt')).status, 200);
  });

  it('prints nothing where folder and index agree', async (t) => {
    const { server, env } = await start(t, newUrl);
    await upload(server, 'a.txt');
    await succeeds(here([], env), '');
  });

  it('removes nothing where the index belongs to other files', async (t) => {
    const { env, folder } = await start(t, newUrl);
    const name = `${randomUUID()}.upload`;
    await writeFile(join(folder, name), 'x');
    await age(folder, name);
    await succeeds(here([], env), `file without an entry\t${name}\n`);
    await fails(
      here(['--remove'], env),
      /STORE_URL: its index names no file that is in UPLOAD_DIR/,
    );
    assert.deepEqual(await readdir(folder), [name]);
  });

  it('says which file cannot be removed', async (t) => {
    const { server, env, folder } = await start(t, newUrl);
    await upload(server, 'a.txt');
    const name = `${randomUUID()}.upload`;
    // A folder is no file: the file system refuses, for root too.
    await mkdir(join(folder, name));
    await age(folder, name);
    await fails(here(['--remove'], env), new RegExp(`Not removed: ${name}, and 0 more`));
  });

  it('keeps a file that was stored after it was found without an entry', async (t) => {
    const { server, env, folder } = await start(t, newUrl);
    await upload(server, 'a.txt');
    const [stored = ''] = await readdir(folder);
    const name = `${randomUUID()}.upload`;
    await writeFile(join(folder, name), 'x');
    await useIndex(env, async (openIndex) => {
      const place = openUploadFolder(env['UPLOAD_DIR'] ?? '', openIndex);
      assert.deepEqual(await removeOrphans(place, [stored, name]), []);
      assert.deepEqual(await readdir(folder), [stored]);
      // Its commit comes late.
      const late = { storedName: 'b.txt', temporaryName: name, size: 1 };
      await assert.rejects(async () => place.index.commit([late]));
    });
    assert.equal((await server.fetch('/api/multiparts/a.txt')).status, 200);
  });
}

async function start(
  context: TestContext,
  newUrl: (context: TestContext) => Promise<string>,
): Promise<{ readonly server: TestServer; readonly env: Env; readonly folder: string }> {
  const directory = await createDirectory(context);
  const env = { STORE_URL: await newUrl(context), UPLOAD_DIR: directory };
  const server = await startServer(context, { env });
  return { server, env, folder: join(directory, 'inkwell-files') };
}

async function upload(server: TestServer, name: string): Promise<void> {
  const body = new FormData();
  body.append('file', new Blob(['text']), name);
  const { status } = await server.fetch('/api/multiparts/list', { method: 'POST', body });
  assert.equal(status, 200);
}

/** More than a day. */
async function age(folder: string, name: string): Promise<void> {
  const time = Date.now() / 1000 - 90_000;
  await utimes(join(folder, name), time, time);
}

async function diskName(env: Env, storedName: string): Promise<string> {
  const list = await useIndex(env, async (openIndex) => {
    const index = openIndex({ filesMax: 1, bytesMax: 1, graceSeconds: 1 });
    return index.list(storedName);
  });
  return list.files[0]?.temporaryName ?? assert.fail();
}

async function useIndex<T>(
  { STORE_URL = '' }: Env,
  work: (openIndex: OpenedAccounts['openFileIndex']) => Promise<T>,
): Promise<T> {
  const opened = await openAccounts(STORE_URL, {
    now: String,
    log: () => undefined,
    startSeconds: 1,
    timeoutSeconds: 5,
  });
  try {
    return await work(opened.openFileIndex);
  } finally {
    await opened.close();
  }
}
