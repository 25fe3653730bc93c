/** Two processes on one SQLite file. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';
import { openOn } from '../support/stores.js';

const only = { skip: skipSqlite };

it(
  'a request sees what another server acknowledged before, in the same iteration too',
  only,
  async (t) => {
    const path = await newSqliteFile(t);
    const store = await openOn(t, toSqliteUrl(path));
    const { id } = await store.posts.create({ title: 'a', content: 'x', authorId: null });
    await openOn(t, toSqliteUrl(path));
    store.changes();
    const isThere = (): boolean => store.posts.find(id) !== undefined;
    assert.ok(isThere());
    inSqlite(path, (database) => database.exec('DELETE FROM posts'));
    // Node runs microtasks between two sockets that one phase of the event loop reads.
    await Promise.resolve();
    assert.ok(!isThere());
  },
);
