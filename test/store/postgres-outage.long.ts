/** What clients and the log are told while PostgreSQL is away, only reads, or closes connections. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { openStore } from '../../dist/store/open.js';
import { createServer, sql } from '../../dist/store/postgres/client/connection.js';
import { Pool } from '../../dist/store/postgres/client/pool.js';
import { withCode } from '../support/errors.ts';
import { file, form, postForm, refusal } from '../support/files.ts';
import { times } from '../support/lists.ts';
import { rounds } from '../support/long.ts';
import { made } from '../support/made.ts';
import { migrateTo } from '../support/migrate-to.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { endTogether, startFront } from '../support/postgres-proxy.ts';
import { startNode } from '../support/program.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { driverOptions } from '../support/driver-options.ts';
import { openSession } from '../support/session.ts';
import { openOn } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';
import { until } from '../support/until.ts';

const modern = 'application/graphql-response+json';
const draft = { title: 'a', content: 'b', authorId: null };
const unavailable = withCode('unavailable');

describe('PostgreSQL', { skip }, () => {
  it('is said to be unavailable while it is away', async (t) => {
    const env = {
      STORE_URL: await database.createDatabase(),
      UPLOAD_DIR: await createDirectory(t),
    };
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
    for (const [at, rest] of [
      await service.fetch('/posts'),
      await service.fetch('/api/multiparts'),
      await postForm(service, 'list', form({ b: file('2', 'b') })),
    ].entries()) {
      assert.equal(rest.headers.get('retry-after'), '2', `rest ${at}`);
      assert.deepEqual(await refusal(rest), [503, 'unavailable'], `rest ${at}`);
    }
    const id = '00000000-0000-7000-8000-000000000000';
    for (const query of ['{ allPosts { id } }', `{ postById(postId: "${id}") { id } }`]) {
      const [response, body] = await ask(query, modern);
      assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '2'], query);
      const { errors, ...others } = body as { errors: { extensions: unknown }[] };
      assert.deepEqual(others, {}, query);
      assert.deepEqual(errors[0]?.extensions, { code: 'UNAVAILABLE', retryAfterSeconds: 2 }, query);
      const [legacy, same] = await ask(query, 'application/json');
      assert.deepEqual([legacy.status, same], [200, body], query);
    }
  });

  it('is named while a start waits for it', async (t) => {
    const url = await database.createDatabase();
    await database.stop();
    const lines: unknown[] = [];
    const log = (_level: string, event: string, facts?: object): number =>
      lines.push({ event, ...facts });
    const opening = openStore(url, driverOptions({ log }));
    await until('a line of the log', () => lines.length > 0);
    await database.start();
    const store = await opening;
    t.after(() => store.close());
    const { host } = new URL(url);
    const line = lines[0] as { event: string; host: string; reason: string };
    assert.deepEqual([line.event, line.host], ['waiting for the database', host]);
    assert.match(line.reason, /ECONNREFUSED/);
    await store.posts.create(draft);
  });

  it('is written to again after it was set to only read', async (t) => {
    const url = await database.createDatabase();
    const target = await createServer(url);
    const lines: string[] = [];
    const log = (_level: string, event: string): number => lines.push(event);
    const pool = new Pool(target, { log, connectionsMax: 2, timeoutSeconds: 5 });
    t.after(() => pool.close());
    const name = new URL(url).pathname.slice(1);
    const elsewhere = url.replace(name, 'postgres');
    const setting = `ALTER DATABASE ${name} SET default_transaction_read_only`;
    const only = (state: string): Promise<unknown> =>
      database.query(elsewhere, `${setting} = ${state}`);
    const write = (): Promise<unknown> => pool.write(sql`INSERT INTO t VALUES (1)`);
    await pool.write(sql`CREATE TABLE t (n integer)`);
    await only('on');
    await database.cutConnections();
    for (const _ of times(20)) {
      await assert.rejects(write(), unavailable);
      await pool.read(sql`SELECT 1`);
    }
    assert.deepEqual(lines, ['database is away']);
    await only('off');
    await until('a write that succeeds', async () => {
      await write().catch(unavailable);
      return lines.includes('database is back');
    });
    assert.deepEqual(lines, ['database is away', 'database is back']);
    await write();
  });

  it('answers within 2 s after its connections were cut once', async (context) => {
    const url = await database.createDatabase();
    const node = await startNode(context, { STORE_URL: url });
    const ask = async (path: string, content?: string): Promise<Response> =>
      fetch(`${node.url}${path}`, {
        ...(content !== undefined && {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ title: 'a', content }),
        }),
      });
    const path = (await ask('/posts', 'b')).headers.get('location') ?? '';
    const seen = { longest: 0, statuses: new Map<number, number>() };
    let left = rounds('CUT_REQUESTS', { short: 10_000, long: 104_000 });
    const cutAt = left - Math.floor(left / 10);
    const load = async (at: number): Promise<void> => {
      while (left > 0) {
        left -= 1;
        if (left === cutAt) void database.cutConnections();
        const began = performance.now();
        const response = await (at % 3 === 0 ? ask(`${path}/comments`, 'c') : ask(path));
        await response.arrayBuffer();
        seen.longest = Math.max(seen.longest, performance.now() - began);
        seen.statuses.set(response.status, (seen.statuses.get(response.status) ?? 0) + 1);
      }
    };
    await Promise.all(times(30).map(load));
    const refused = seen.statuses.get(503) ?? 0;
    context.diagnostic(`longest ${seen.longest.toFixed()} ms, ${refused} refused`);
    assert.ok(seen.longest < 2_000, `${seen.longest} ms`);
    // Of each connection at most the statement that was under way, and those that it stood for.
    assert.ok(refused <= 30, `${refused} refused`);
  });

  it('connects at most a few times a second to a front that only closes', async (context) => {
    const url = new URL(await database.createDatabase());
    const target = Number(url.port);
    const seen = { connections: 0, isClosing: false };
    url.host = await startFront(context, (near) => {
      seen.connections += 1;
      if (seen.isClosing) near.end();
      else {
        const far = connect(target, '127.0.0.1');
        endTogether(near, far);
        near.pipe(far).pipe(near);
      }
    });
    const store = await openOn(context, url.href, { timeoutSeconds: 5 });
    const { id } = await store.posts.create(draft);
    seen.isClosing = true;
    await database.cutConnections();
    seen.connections = 0;
    const end = performance.now() + 3_000;
    while (performance.now() < end) {
      const asked = performance.now();
      await assert.rejects(async () => store.posts.find(id), unavailable);
      assert.ok(performance.now() - asked < 3_000);
    }
    assert.ok(seen.connections < 60, `${seen.connections} connections`);
    seen.isClosing = false;
    await until(
      'a read',
      () => Promise.resolve(store.posts.find(id)).then(Boolean, () => false),
      3,
    );
  });

  for (const [what, steps, lock] of [
    ['a reader', 4, 'LOCK TABLE inkwell.comments IN ACCESS SHARE MODE'],
    ['a writer', 7, `UPDATE inkwell.posts SET title = 'a'`],
  ] as const) {
    it(`brings the tables up to date beside ${what}, step by step, and stops nobody else`, async (t) => {
      const url = await database.createDatabase();
      await migrateTo(url, steps);
      const other = openSession(t, url);
      const lines: string[] = [];
      const log = (_level: string, event: string): number => lines.push(event);
      const opening = await other.begin(async () => {
        await other.run(lock);
        const store = openStore(url, driverOptions({ log }));
        await until('the line', () => lines.includes('waiting for the tables of the database'));
        for (let again = 0; again < 100; again += 1) {
          const asked = performance.now();
          // A step that is done locks nothing.
          await database.query(url, 'SELECT FROM inkwell.comments, inkwell.articles');
          assert.ok(performance.now() - asked < 2_000, `round ${again}`);
        }
        const [state] = await other.run('SELECT version FROM inkwell.schema_state');
        if (steps === 7) assert.equal(state?.['version'], 9);
        return { store };
      });
      const store = await opening.store;
      t.after(() => store.close());
      const { id } = made(await store.posts.create(draft));
      assert.ok(await store.comments.add(id, 'c'));
    });
  }
});
