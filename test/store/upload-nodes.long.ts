/** Server processes with their files in one folder and the index of it in a database. */

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Asked, file, form, post, stored } from '../support/files.js';
import { times } from '../support/lists.js';
import { skipPostgres } from '../support/postgres.js';
import { type NodeProcess, startNode } from '../support/program.js';
import { database } from '../support/shared-postgres.js';
import { newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';
import { createDirectory } from '../support/uploads.js';
import { listDurable } from './upload-places.js';

const kills = Number(process.env['INKWELL_KILLS'] ?? 10);

type Env = Readonly<Record<string, string>>;
type Node = NodeProcess & Asked;

async function start(context: TestContext, env: Env): Promise<Node> {
  const node = await startNode(context, { STORE_TIMEOUT_SECONDS: '2', ...env });
  // Not a copy of it: its log is read anew each time.
  return Object.assign(node, {
    fetch: (path, init) => fetch(node.url + path, init),
  } satisfies Asked);
}

function hash(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Uploads files until the server is gone; gives those that were acknowledged, and all. */
async function uploadUntilKilled(
  node: Asked,
  label: string,
): Promise<{ readonly acknowledged: string[]; readonly asked: Map<string, string> }> {
  const acknowledged: string[] = [];
  const asked = new Map<string, string>();
  for (let count = 0; ; count += 1) {
    const name = `${label}-${count}`;
    const content = randomBytes(100_000).toString('hex');
    asked.set(name, hash(content));
    try {
      const response = await post(node, 'list', form({ part: file(content, name) }));
      if (response.status === 200) acknowledged.push(name);
    } catch {
      return { acknowledged, asked };
    }
  }
}

/** Kills the nodes in the middle of uploads, and looks at what the next ones give back. */
async function killAndLook(context: TestContext, env: Env, nodes: number): Promise<void> {
  const acknowledged: string[] = [];
  const asked = new Map<string, string>();
  for (let round = 0; round < kills; round += 1) {
    const running = await Promise.all(times(nodes).map(() => start(context, env)));
    const uploading = running.flatMap((node, at) =>
      [0, 1].map((writer) => uploadUntilKilled(node, `${round}-${at}-${writer}`)),
    );
    await pause(150 + Math.random() * 250);
    await Promise.all(running.map((node) => node.signal('SIGKILL')));
    for (const uploaded of await Promise.all(uploading)) {
      acknowledged.push(...uploaded.acknowledged);
      for (const [name, content] of uploaded.asked) asked.set(name, content);
    }
  }
  const node = await start(context, env);
  const found = new Map((await stored(node)).map(([name, , , content]) => [name, hash(content)]));
  assert.ok(acknowledged.length > 2, 'the servers had no time to store anything');
  for (const name of acknowledged) assert.ok(found.has(name), `${name} was acknowledged`);
  for (const [name, content] of found) assert.equal(content, asked.get(name), name);
  context.diagnostic(`${acknowledged.length} uploads acknowledged, ${found.size} kept`);
}

describe('nodes with their files in one folder', { skip: skipPostgres }, () => {
  it('have every acknowledged file whole after being killed', async (t) => {
    const STORE_URL = await database.createDatabase();
    await killAndLook(t, { STORE_URL, UPLOAD_DIR: await createDirectory(t) }, 2);
  });
});

describe('a server on SQLite with a folder for its files', { skip: skipSqlite }, () => {
  it('has every acknowledged file whole after being killed', async (t) => {
    const env = {
      STORE_URL: toSqliteUrl(await newSqliteFile(t)),
      UPLOAD_DIR: await createDirectory(t),
    };
    await killAndLook(t, env, 1);
  });

  it('leaves out what is missing after a restart, says so, and takes it again', async (t) => {
    const directory = await createDirectory(t);
    const env = { STORE_URL: toSqliteUrl(await newSqliteFile(t)), UPLOAD_DIR: directory };
    const first = await start(t, env);
    await post(first, 'list', form({ x: file('1', 'kept.txt'), y: file('2', 'lost.txt') }));
    await first.signal('SIGTERM');
    assert.equal(first.logged.at(-1)?.['event'], 'stopped');
    assert.ok(!first.logged.some(({ level }) => level === 'warn'));

    const [, lost = ''] = (await listDurable(directory)).toSorted();
    const folder = join(directory, 'inkwell-files');
    await rm(join(folder, lost));
    await writeFile(join(folder, 'stray.upload'), 'x');
    await utimes(join(folder, 'stray.upload'), 1_000, 1_000);
    const second = await start(t, env);
    const storedNow = async (): Promise<unknown> =>
      (await stored(second)).map(([name, , , content]) => [name, content]);
    assert.deepEqual(await storedNow(), [['kept.txt', '1']]);
    const told = second.logged.find(({ event }) => event === 'stored file missing');
    assert.deepEqual([told?.['level'], told?.['temporaryName']], ['error', lost]);
    while ((await listDurable(directory)).length > 1) await second.fetch('/hello');
    assert.equal((await post(second, 'list', form({ y: file('3', 'lost.txt') }))).status, 200);
    assert.deepEqual(await storedNow(), Object.entries({ 'kept.txt': '1', 'lost.txt': '3' }));
  });

  it('has the folder of the run, where UPLOAD_DIR is not set', async (t) => {
    const directory = await createDirectory(t);
    const node = await start(t, {
      STORE_URL: toSqliteUrl(await newSqliteFile(t)),
      UPLOAD_DIR: '',
      TMPDIR: directory,
    });
    assert.equal((await post(node, 'list', form({ a: '1' }))).status, 200);
    assert.match((await readdir(directory)).join(), /^inkwell-run-\w{6}$/);
    await node.signal('SIGTERM');
    assert.deepEqual(await readdir(directory), []);
  });
});
