/** What clients and the log are told while PostgreSQL is away or only reads. */

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openStore } from '../../dist/store/open.js';
import { createServer, sql } from '../../dist/store/postgres/connection.js';
import { Pool } from '../../dist/store/postgres/pool.js';
import { withCode } from '../support/errors.js';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.js';
import { startServer } from '../support/server.js';
import { driverOptions } from './driver-suite.js';

const modern = 'application/graphql-response+json';
const draft = { title: 'a', content: 'b', authorId: null };

describe('PostgreSQL', { skip }, () => {
  let database: PostgresServer;
  before(async () => {
    database = await startPostgres();
  });
  after(() => database.remove());

  it('is said to be unavailable while it is away', async (t) => {
    const env = { STORE_URL: await database.createDatabase() };
    const service = await startServer(t, { env });
    const ask = async (query: string, accept: string): Promise<[Response, unknown]> => {
      const response = await service.fetch('/graphql', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: accept },
        body: JSON.stringify({ query }),
      });
      return [response, await response.json()];
    };
    assert.equal((await ask('{ allPosts { id } }', modern))[0].status, 200);
    await database.stop();
    t.after(() => database.start());
    const rest = await service.fetch('/posts');
    assert.deepEqual([rest.status, rest.headers.get('retry-after')], [503, '2']);
    assert.equal(((await rest.json()) as { code: string }).code, 'unavailable');
    const id = '00000000-0000-7000-8000-000000000000';
    for (const query of ['{ allPosts { id } }', `{ postById(postId: "${id}") { id } }`]) {
      const [response, body] = await ask(query, modern);
      assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '2']);
      const { errors, ...others } = body as { errors: { extensions: unknown }[] };
      assert.deepEqual(others, {});
      assert.deepEqual(errors[0]?.extensions, { code: 'UNAVAILABLE', retryAfterSeconds: 2 });
      const [legacy, same] = await ask(query, 'application/json');
      assert.deepEqual([legacy.status, same], [200, body]);
    }
  });

  it('is written to again after it was set to only read', async (t) => {
    const url = await database.createDatabase();
    const server = await createServer(url);
    const lines: string[] = [];
    const log = (_level: string, event: string): number => lines.push(event);
    const pool = new Pool(server, { log, connectionsMax: 2, timeoutSeconds: 5 });
    t.after(() => pool.close());
    const name = new URL(url).pathname.slice(1);
    const elsewhere = url.replace(name, 'postgres');
    const only = (state: string): Promise<unknown> =>
      database.query(
        elsewhere,
        `ALTER DATABASE ${name} SET default_transaction_read_only = ${state}`,
      );
    const write = (): Promise<unknown> => pool.write(sql`INSERT INTO t VALUES (1)`);
    await pool.write(sql`CREATE TABLE t (n integer)`);
    await only('on');
    await database.cutConnections();
    for (let times = 0; times < 20; times += 1) {
      await assert.rejects(write(), withCode('unavailable'));
      await pool.read(sql`SELECT 1`);
    }
    assert.deepEqual(lines, ['database is away']);
    await only('off');
    while (!lines.includes('database is back')) {
      await write().catch(withCode('unavailable'));
    }
    assert.deepEqual(lines, ['database is away', 'database is back']);
    await write();
  });

  it('is named while a start waits for it', async (t) => {
    const url = await database.createDatabase();
    await database.stop();
    const lines: unknown[] = [];
    const log = (_level: string, event: string, facts?: object): number =>
      lines.push({ event, ...facts });
    const opening = openStore(url, driverOptions({ log }));
    while (lines.length === 0) await new Promise(setImmediate);
    await database.start();
    const store = await opening;
    t.after(() => store.close());
    const { host } = new URL(url);
    const line = lines[0] as { event: string; host: string; reason: string };
    assert.deepEqual([line.event, line.host], ['waiting for the database', host]);
    assert.match(line.reason, /ECONNREFUSED/);
    await store.posts.create(draft);
  });
});
