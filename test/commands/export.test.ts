/** `export` beside a server that writes: one moment, in bounded memory (R50). */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { fails, runCommandHere } from '../support/command.ts';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';
import { durableStores } from '../support/stores.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { exportFrom, newPlace, type Place } from '../support/transfer.ts';

const program = fileURLToPath(new URL('../../dist/server.js', import.meta.url));

async function upload(server: TestServer, content: string): Promise<void> {
  const body = new FormData();
  body.append('part', new Blob([content]), 'a.txt');
  const response = await server.fetch('/api/multiparts/simple', { method: 'POST', body });
  assert.equal(response.status, 200);
}

/** Begins an export of more than the pipe takes, and lets it wait. */
async function beginExport(place: Place) {
  const child = spawn(process.execPath, [program, 'export'], { env: { ...process.env, ...place } });
  const errors = text(child.stderr);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  await once(child.stdout, 'readable');
  return {
    async rest() {
      const [output, [code]] = await Promise.all([text(child.stdout), exited]);
      return { output, code, errors: await errors };
    },
    async leave() {
      child.stdout.destroy();
      const [code] = await exited;
      return { code, errors: await errors };
    },
  };
}

for (const each of durableStores) {
  describe(`export of a store ${each.name}`, { skip: each.skip }, () => {
    const start = async (t: TestContext) => {
      const place = await newPlace(t, each);
      const server = await startServer(t, { env: { ...place, DEMO_DATA: 'false' } });
      await upload(server, 'a'.repeat(300_000));
      await upload(server, 'b'.repeat(300_000));
      const created = await server.send('POST', '/posts', { title: 'kept', content: 'c' });
      return { place, server, path: created.headers.get('location') ?? '' };
    };

    it('is of one moment, whatever is written and removed meanwhile', async (t) => {
      const { place, server, path } = await start(t);
      await server.send('POST', `${path}/comments`, { content: 'kept' });
      const before = (await exportFrom(place)).output;
      const running = await beginExport(place);
      const other = await server.send('POST', '/posts', { title: 'late', content: 'late' });
      await server.send('POST', `${other.headers.get('location')}/comments`, { content: 'late' });
      await server.send('POST', `${path}/comments`, { content: 'late' });
      await server.send('PUT', path, { title: 'late', content: 'late' });
      await server.send('POST', '/api/articles', { title: 'late' });
      await upload(server, 'late');
      const { output, code, errors } = await running.rest();
      assert.deepEqual([code, errors], [0, '']);
      assert.equal(output, before);
      assert.equal((await exportFrom(place)).output.match(/late/g)?.length, 7);
    });

    it('fails, and says why, if the content of a file is gone', async (t) => {
      const { place } = await start(t);
      const folder = join(place.UPLOAD_DIR, 'inkwell-files');
      for (const name of await readdir(folder)) if (name !== 'id') await rm(join(folder, name));
      const { code, errors } = await exportFrom(place);
      assert.equal(code, 1);
      assert.match(errors, /^inkwell: The content of the file "a\.txt" cannot be read: it is/);
      const { output } = await exportFrom({ ...place, UPLOAD_DIR: '' });
      assert.ok(!output.includes('"kind":"end"'));
    });

    it('ends when nobody reads it any more', async (t) => {
      const { place } = await start(t);
      const { code, errors } = await (await beginExport(place)).leave();
      assert.equal(code, 1);
      assert.match(errors, /^inkwell: [^\n]*EPIPE\n$/);
    });
  });
}

test('tables of another version are not read', { skip: skipSqlite }, async (t) => {
  const path = await newSqliteFile(t);
  const env = { STORE_URL: toSqliteUrl(path) };
  await fails(runCommandHere(['export'], { env }), /STORE_URL: .*cannot be opened \(ENOENT/);
  assert.equal((await runCommandHere(['migrate'], { env })).code, 0);
  inSqlite(path, (file) => file.exec('PRAGMA user_version = 3'));
  await fails(runCommandHere(['export'], { env }), /the tables are of another version: run the/);
});
