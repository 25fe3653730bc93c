/** A backup as docs/production.md makes it, restored into another cluster. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { postgresFolder, skipPostgres as skip } from '../support/postgres.ts';
import { startPair } from '../support/postgres-pair.ts';
import { startNode } from '../support/program.ts';
import { database } from '../support/shared-postgres.ts';
import { askEvents } from '../support/sse-client.ts';
import { times } from '../support/lists.ts';
import { createDirectory } from '../support/uploads.ts';

const run = promisify(execFile);

/** Stores a comment on the first post, and returns its id. */
async function comment(node: { readonly url: string }, content: string): Promise<string> {
  const post = async (path: string, body: object): Promise<string> => {
    const response = await fetch(`${node.url}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 201);
    return response.headers.get('location') ?? '';
  };
  const place = await post('/posts', { title: 'a', content: 'b' });
  return (await post(`${place}/comments`, { content })).slice('/comments/'.length);
}

test(
  'after a failover and a restore, subscribers go on where they were (R41)',
  { skip },
  async (t) => {
    const { url, primary, promote } = await startPair(t);
    // The cluster of the backup has had a failover, that of the restore none.
    await primary.stop();
    await promote();
    const before = await startNode(t, { STORE_URL: url });
    const ids: string[] = [];
    for (const at of times(6)) ids.push(await comment(before, `c${at + 1}`));
    const copy = join(await createDirectory(t), 'copy.dump');
    const program = (name: string, ...args: string[]) => run(join(postgresFolder, name), args);
    await program('pg_dump', '--format=custom', '--schema=inkwell', `--file=${copy}`, url);
    const restored = await database.createDatabase();
    await program('pg_restore', '--single-transaction', `--dbname=${restored}`, copy);

    const after = await startNode(t, { STORE_URL: restored });
    const query = 'subscription { commentAdded { content } }';
    const port = Number(new URL(after.url).port);
    const reader = await askEvents({ port }, query, { 'Last-Event-ID': ids[4] });
    t.after(() => reader.leave());
    ids.push(await comment(after, 'c7'));
    const told = [];
    while (told.length < 2) {
      const event = await reader.next();
      if (event?.startsWith('id:') === true) told.push(event.slice(4, 40));
    }
    assert.deepEqual(told, ids.slice(5));
  },
);
