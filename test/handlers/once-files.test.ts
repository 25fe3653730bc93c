/** R40 for files on PostgreSQL: a removal under a key meets an upload on another node. */

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';
import { until } from '../support/until.ts';

const name = 'a file that is replaced while it is removed is removed as it is then, and once';
test(name, { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-door-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const storeUrl = await database.clearedDatabase();
  const { url } = await startServer(t, { env: { STORE_URL: storeUrl, UPLOAD_DIR: folder } });
  const headers = { 'Idempotency-Key': 'k' };
  const remove = () => fetch(`${url}/api/multiparts/a.txt`, { method: 'DELETE', headers });
  const upload = (content: string) =>
    fetch(`${url}/api/multiparts/simple`, {
      method: 'POST',
      headers: { 'Content-Type': multipartType },
      body: multipartBody([part('part', content, { fileName: 'a.txt', type: 'text/plain' })]),
    });
  assert.equal((await upload('text')).status, 200);
  const session = openSession(t, storeUrl);
  await session`BEGIN`;
  await session`UPDATE inkwell.files SET disk_name = 'newer.upload'`;
  const removed = remove();
  await until('a removal that waits for the row', async () => {
    const ofLock = `SELECT FROM pg_stat_activity WHERE datname = current_database()
      AND wait_event_type = 'Lock'`;
    return (await database.query(storeUrl, ofLock)).length > 0;
  });
  await session`COMMIT`;
  assert.equal((await removed).status, 204);
  assert.deepEqual(await (await fetch(`${url}/files`)).json(), []);
  await upload('later');
  assert.equal((await remove()).headers.get('idempotency-replayed'), 'true');
  assert.equal(await (await fetch(`${url}/files/a.txt`)).text(), 'later');
});
