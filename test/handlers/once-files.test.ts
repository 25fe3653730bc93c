/** R40 for files on PostgreSQL: a removal under a key meets an upload on another node. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { file, form, postForm } from '../support/files.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';
import { until } from '../support/until.ts';
import { createDirectory } from '../support/uploads.ts';

const name = 'a file that is replaced while it is removed is removed as it is then, and once';
test(name, { skip }, async (t) => {
  const STORE_URL = await database.clearedDatabase();
  const env = { STORE_URL, UPLOAD_DIR: await createDirectory(t) };
  const server = await startServer(t, { env });
  const init = { method: 'DELETE', headers: { 'Idempotency-Key': 'k' } };
  const remove = () => server.fetch('/api/multiparts/a.txt', init);
  const upload = (content: string) =>
    postForm(server, 'simple', form({ part: file(content, 'a.txt') }));
  assert.equal((await upload('text')).status, 200);
  const session = openSession(t, STORE_URL);
  await session`BEGIN`;
  await session`UPDATE inkwell.files SET disk_name = 'newer.upload'`;
  const removed = remove();
  await until('a removal that waits for the row', async () => {
    const ofLock = `SELECT FROM pg_stat_activity WHERE datname = current_database()
      AND wait_event_type = 'Lock'`;
    return (await database.query(STORE_URL, ofLock)).length > 0;
  });
  await session`COMMIT`;
  assert.equal((await removed).status, 204);
  assert.deepEqual(await server.read('/files'), []);
  await upload('later');
  assert.equal((await remove()).headers.get('idempotency-replayed'), 'true');
  assert.equal(await (await server.fetch('/files/a.txt')).text(), 'later');
});
