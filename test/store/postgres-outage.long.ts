/** Stores on a PostgreSQL whose connections are cut, or that is away for a while. */

import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { openStore } from '../../dist/store/open.js';
import type { Comment } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.js';
import { driverOptions } from './driver-suite.js';
import { allOf } from '../support/lists.js';
import { watching } from '../support/watching.js';

const draft = { title: 'a', content: 'b', authorId: null };
const unavailable = { name: 'AppError', code: 'unavailable' };

async function open(context: TestContext, url: string, seconds = 2): Promise<Store> {
  const store = await openStore(url, driverOptions({ timeoutSeconds: seconds }));
  context.after(() => store.close());
  return store;
}

async function until(what: () => Promise<boolean> | boolean, seconds = 10): Promise<void> {
  const end = Date.now() + seconds * 1000;
  while (!(await what())) {
    assert.ok(Date.now() < end, `not within ${seconds} s`);
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}

/** Adds comments one after the other; those that are refused meanwhile are not counted. */
async function addFor(store: Store, postId: string, isOver: () => boolean): Promise<string[]> {
  const ids: string[] = [];
  while (!isOver()) {
    try {
      const comment = await store.comments.add(postId, 'again');
      if (comment !== undefined) ids.push(comment.id);
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'unavailable');
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
    }
  }
  return ids;
}

function hear(store: Store): string[] {
  const heard: string[] = [];
  store.comments.watch?.(({ id }) => heard.push(id));
  return heard;
}

/** Nothing acknowledged is lost, and every node hears all that is stored, in that order. */
async function isWhole(
  comments: readonly Comment[] | undefined,
  acknowledged: readonly string[],
  heard: readonly (readonly string[])[],
): Promise<void> {
  const stored = comments?.map(({ id }) => id) ?? [];
  assert.deepEqual(
    acknowledged.filter((id) => !stored.includes(id)),
    [],
  );
  await until(() => heard.every(({ length }) => length >= stored.length));
  for (const ids of heard) assert.deepEqual(ids, stored);
}

describe('a store on PostgreSQL', { skip }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.remove());

  it('goes on when its connections are cut, and loses no comment', async (context) => {
    const url = await server.createDatabase();
    const [one, other] = [await open(context, url), await open(context, url)];
    const heard = [hear(one), hear(other)];
    await watching([one, other]);
    const { id } = await one.posts.create(draft);
    let over = false;
    const adding = Promise.all([one, other, one].map((node) => addFor(node, id, () => over)));
    for (let cuts = 0; cuts < 5; cuts += 1) {
      await server.cutConnections();
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
    }
    over = true;
    const acknowledged = (await adding).flat();
    await isWhole(await allOf(one.comments.ofPost(id)), acknowledged, heard);
  });

  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    it(`refuses requests while the server is away (${signal}), then goes on`, async (context) => {
      const url = await server.createDatabase();
      const [one, other] = [await open(context, url), await open(context, url)];
      const heard = [hear(one), hear(other)];
      await watching([one, other]);
      const { id } = await one.posts.create(draft);
      let over = false;
      const adding = Promise.all([one, other, other].map((node) => addFor(node, id, () => over)));
      await until(() => (heard[0]?.length ?? 0) > 20);
      await server.stop(signal);
      const asked = Date.now();
      await assert.rejects(async () => one.posts.find(id), unavailable);
      await assert.rejects(async () => one.posts.create(draft), unavailable);
      assert.ok(Date.now() - asked < 5_000);
      await server.start();
      const back = Date.now();
      await until(async () => Promise.resolve(one.posts.find(id)).then(Boolean, () => false));
      assert.ok(Date.now() - back < 5_000);
      const already = heard[1]?.length ?? 0;
      await until(() => (heard[1]?.length ?? 0) > already + 20);
      over = true;
      const acknowledged = (await adding).flat();
      await isWhole(await allOf(one.comments.ofPost(id)), acknowledged, heard);
    });
  }

  it('gives up on a server that says nothing, and finds it again', async (context) => {
    const url = await server.createDatabase();
    const store = await open(context, url, 1);
    const { id } = await store.posts.create(draft);
    await server.signal('SIGSTOP');
    const asked = Date.now();
    try {
      await assert.rejects(async () => store.posts.find(id), unavailable);
      assert.ok(Date.now() - asked < 6_000);
    } finally {
      await server.signal('SIGCONT');
    }
    await until(async () => Promise.resolve(store.posts.find(id)).then(Boolean, () => false));
  });

  it('reads what belongs to ten thousand posts in good time', async (context) => {
    const url = await server.createDatabase();
    const store = await open(context, url);
    await server.query(
      url,
      `INSERT INTO inkwell.posts (id, title, content, status, created_at)
         SELECT gen_random_uuid(), n, n, 'DRAFT', '' FROM generate_series(1, 10000) AS n;
       INSERT INTO inkwell.comments (id, post_id, content, created_at)
         SELECT gen_random_uuid(), id, 'c', '' FROM inkwell.posts, generate_series(1, 2)`,
    );
    const posts = await allOf(store.posts.all);
    assert.equal(posts.length, 10_003);
    const comments =
      (await store.related?.commentsOfPosts(
        posts.map(({ id }) => id),
        1_000_000,
      )) ?? new Map<string, readonly Comment[]>();
    assert.equal(comments.size, 10_003);
  });
});
