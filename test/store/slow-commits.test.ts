/** What waits for the commits of others in PostgreSQL, on a disk that is slow for a while. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { skipPostgres as skip } from '../support/postgres.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { createDirectory, store } from '../support/uploads.ts';
import { listDurable, openDurable } from './upload-places.ts';

test('comments and uploads wait for a commit that takes over a second', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const records = await openOn(t, url, { timeoutSeconds: 600 });
  const directory = await createDirectory(t);
  const { uploads } = await openDurable(records, t, { directory });
  await uploads.sweep();
  const post = await records.posts.create({ title: 'a', content: 'b', authorId: null });
  const session = openSession(t, url);
  const both = await session.begin(async () => {
    // As another node does it: both locks are held until the commit.
    await session`INSERT INTO inkwell.comments (id, post_id, content, created_at)
      VALUES (${randomUUID()}, ${post.id}, 'first', '2026-01-01T00:00:00')`;
    await session`SELECT pg_advisory_xact_lock(${0x49_6e_6b_66})`;
    const stored = Promise.all([
      records.comments.add(post.id, 'second'),
      store(uploads, { a: '1' }),
    ]);
    await until('two that wait for the commit', async () => {
      const waiting = await session`SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND NOT granted AND database = (
          SELECT oid FROM pg_database WHERE datname = current_database())`;
      return waiting.length === 2;
    });
    await session`SELECT pg_sleep(1.3)`;
    return { stored };
  });
  await both.stored;
  assert.equal((await listDurable(directory)).length, 1);
});
