/** What writes to a SQLite file that is not at its path any more are told. */

import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { refusal } from '../support/files.ts';
import { times } from '../support/lists.ts';
import { startServer } from '../support/server.ts';
import { skipSqlite } from '../support/sqlite.ts';
import { inSqliteFile } from '../support/stores.ts';

describe('a SQLite file', { skip: skipSqlite }, () => {
  it('that was deleted is written to no more, which clients are told, and read', async (context) => {
    const url = await inSqliteFile.newUrl(context);
    const server = await startServer(context, { env: { STORE_URL: url } });
    const post = () => server.send('POST', '/posts', { title: 'a', content: 'b' });
    assert.equal((await post()).status, 201);
    await rm(fileURLToPath(url.replace('sqlite:', 'file:')));
    for (const _ of times(3)) assert.deepEqual(await refusal(await post()), [503, 'unavailable']);
    assert.equal((await server.fetch('/readyz')).status, 503);
    assert.equal((await server.fetch('/posts')).status, 200);
    const event = 'the file of the store was deleted';
    assert.equal(server.logged.filter((record) => record.event === event).length, 1);
  });
});
