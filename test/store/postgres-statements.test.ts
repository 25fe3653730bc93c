/**
 * What requests ask PostgreSQL at the same time is one statement, and each learns its own fate.
 * A lock holds up who needs what is locked, and nobody else.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it, test, type TestContext } from 'node:test';
import { codeOf } from '../../dist/errors.js';
import { createServer, run, sql } from '../../dist/store/postgres/client/connection.js';
import { Pool } from '../../dist/store/postgres/client/pool.js';
import type { Article } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { changing, valueOf } from '../support/article-texts.ts';
import { withCode } from '../support/errors.ts';
import { allOf, pluck, times } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { openSession } from '../support/session.ts';
import { openOn } from '../support/stores.ts';

const draft = { title: 'a', content: 'b', authorId: null };

describe('statements that are joined', { skip }, () => {
  async function open(t: TestContext) {
    const url = await database.emptyDatabase();
    return { url, store: await openOn(t, url), session: openSession(t, url) };
  }

  /** Raises an error, or does something else, for each comment with this text. */
  function trigger(text: string, action: string, more = ''): string {
    return `CREATE OR REPLACE FUNCTION public.act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF new.content = '${text}' THEN ${action}; END IF; RETURN new; END $$;
      CREATE ${more === '' ? '' : 'CONSTRAINT'} TRIGGER act AFTER INSERT ON inkwell.comments ${more}
        FOR EACH ROW EXECUTE FUNCTION public.act()`;
  }

  async function addAll(store: Store, texts: readonly string[], postId: string) {
    return Promise.all(
      texts.map(async (text) =>
        Promise.resolve(store.comments.add(postId, text)).then(
          (comment) => (comment === undefined ? 'no post' : 'stored'),
          (error: unknown) => codeOf(error) ?? 'internal',
        ),
      ),
    );
  }

  const stored = async ({ comments }: Store, id: string): Promise<readonly string[]> =>
    pluck(await allOf(comments.ofPost(id)), 'content');

  it('store the others where one violates a constraint', async (t) => {
    const { store, session } = await open(t);
    const { id } = await store.posts.create(draft);
    await session.run(trigger('bad', "RAISE EXCEPTION 'no' USING ERRCODE = '23514'"));
    const fates = await addAll(store, ['one', 'bad', 'two'], id);
    assert.deepEqual(fates, ['stored', 'internal', 'stored']);
    assert.deepEqual((await stored(store, id)).toSorted(), ['one', 'two']);
  });

  it('store the others where one waits for a lock, and where its post is gone', async (t) => {
    const { store, session } = await open(t);
    const [free, locked, gone] = await Promise.all(
      [1, 2, 3].map(async () => (await store.posts.create(draft)).id),
    );
    await store.posts.remove(gone ?? '');
    await session.begin(async () => {
      await session`SELECT FROM inkwell.posts WHERE id = ${locked ?? ''} FOR UPDATE`;
      const fates = await Promise.all(
        [free, locked, gone, free].map(async (id) => addAll(store, ['c'], id ?? '')),
      );
      assert.deepEqual(fates.flat(), ['stored', 'overloaded', 'no post', 'stored']);
    });
    assert.deepEqual(await stored(store, locked ?? ''), []);
    assert.deepEqual(await stored(store, free ?? ''), ['c', 'c']);
  });

  it('refuse each comment once where the connection is lost in the commit', async (t) => {
    const { store, session } = await open(t);
    const { id } = await store.posts.create(draft);
    const cut = 'PERFORM pg_terminate_backend(pg_backend_pid())';
    await session.run(trigger('cut', cut, 'DEFERRABLE INITIALLY DEFERRED'));
    const fates = await addAll(store, ['one', 'cut', 'two'], id);
    assert.deepEqual(fates, ['unavailable', 'unavailable', 'unavailable']);
    assert.deepEqual(await stored(store, id), []);
    await session`DROP TRIGGER act ON inkwell.comments`;
    assert.deepEqual(await addAll(store, ['one', 'two'], id), ['stored', 'stored']);
    assert.deepEqual(await stored(store, id), ['one', 'two']);
  });

  it('show every node what another has acknowledged', async (t) => {
    const { url, store } = await open(t);
    const other = await openOn(t, url);
    await Promise.all(
      times(20).map(async () => {
        for (let count = 0; count < (isLong ? 25 : 4); count += 1) {
          const { id } = await store.posts.create(draft);
          assert.equal((await other.posts.find(id))?.id, id, `round ${count}`);
          const comment = await other.comments.add(id, 'c');
          const { records } = await store.comments.ofPost(id).read();
          assert.deepEqual(records, [comment], `round ${count}`);
          assert.equal(await store.posts.remove(id), true, `round ${count}`);
          assert.equal(await other.posts.find(id), undefined, `round ${count}`);
          assert.equal(await other.comments.add(id, 'c'), undefined, `round ${count}`);
        }
      }),
    );
  });
});

test('statements end in time although the clock is set back', { skip }, async (t) => {
  const one = await createServer(await database.emptyDatabase());
  const pool = new Pool(one, { log: () => undefined, connectionsMax: 1, timeoutSeconds: 1 });
  t.after(() => pool.close());
  const past = Date.now() - 3_600_000;
  t.mock.method(Date, 'now', () => past);
  const slow = [1, 2, 3, 4].map(() => pool.read(sql`SELECT pg_sleep(5)`));
  // The server ends the first; the last is given up while it waits for the connection.
  const [first, , , last] = await Promise.allSettled(slow);
  const reasons = [first, last].map((end) => end?.status === 'rejected' && codeOf(end.reason));
  assert.deepEqual(reasons, ['overloaded', 'unavailable']);
  const [row] = await pool.read(sql`SELECT 7 AS n`);
  assert.equal(row?.['n'], '7');
});

test('a locked table holds up who asks for its records, and nobody else', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const limits = { STORE_TIMEOUT_SECONDS: '600', IDLE_TIMEOUT_SECONDS: '600' };
  const service = await startServer(t, { env: { STORE_URL: url, ...limits } });
  const session = openSession(t, url);
  await session.begin(async () => {
    await session`LOCK TABLE inkwell.todos IN ACCESS EXCLUSIVE MODE`;
    const todos = ['/api/todos', `/api/todos/${randomUUID()}`, `/api/todos/${randomUUID()}`];
    const ask = async (path: string): Promise<number> => (await service.fetch(path)).status;
    const lists = Promise.all(times(30).map((at) => ask(todos[at % 3] ?? '')));
    const others = ['/posts', '/api/articles', '/api/articles/1', '/posts'].map(ask);
    assert.deepEqual(await Promise.all(others), [200, 200, 200, 200]);
    assert.deepEqual(new Set(await lists), new Set([503]));
  });
  assert.equal((await service.fetch('/api/todos')).status, 200);
  assert.ok(!service.logged.some(({ event }) => event === 'database is away'));
});

test('a change of an article does not wait for one of another, or of all', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const { articles } = await openOn(t, url);
  const session = openSession(t, url);
  await session.begin(async () => {
    await session`SELECT FROM inkwell.articles WHERE id = 1 FOR UPDATE`;
    const done: string[] = [];
    const retitle = (only: number): ((all: readonly Article[]) => readonly Article[]) => {
      const change = changing({ title: 'a' });
      return (all) => all.map((article) => (article.id === only ? change(article) : article));
    };
    const locked = [
      async () => articles.changeAll(retitle(1)),
      async () => articles.change(1, changing({ title: 'a' })),
    ].map(async (change) => {
      await assert.rejects(change, withCode('overloaded'));
      done.push('1 refused');
    });
    await articles.change(2, changing({ title: 'b' }));
    done.push('2 changed');
    assert.equal(valueOf(await articles.find(2))?.title, 'b');
    await Promise.all(locked);
    assert.deepEqual(done, ['2 changed', '1 refused', '1 refused']);
  });
  assert.equal((await allOf(articles.all)).length, 2);
});

test('a plan is made once for all values, and not compiled', { skip }, async (t) => {
  const server = await createServer(await database.emptyDatabase());
  const connection = await server.connect({ statementSeconds: 5 });
  t.after(() => connection.end());
  assert.deepEqual(await run(connection, sql`SHOW jit`), [{ jit: 'off' }]);
  const modes = await run(connection, sql`SHOW plan_cache_mode`);
  assert.deepEqual(modes, [{ plan_cache_mode: 'force_generic_plan' }]);
});
