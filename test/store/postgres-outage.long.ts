/** Stores on a PostgreSQL whose connections are cut, or that is away for a while. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it, type TestContext } from 'node:test';
import postgres from 'postgres';
import { openStore } from '../../dist/store/open.js';
import type { Comment } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { rounds } from '../support/long.js';
import { startNode } from '../support/program.js';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.js';
import { endTogether, startFront } from '../support/postgres-proxy.js';
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

  it('answers within 2 s after its connections were cut once', async (context) => {
    const url = await server.createDatabase();
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
    const load = async (_: unknown, at: number): Promise<void> => {
      while (left > 0) {
        left -= 1;
        if (left === cutAt) void server.cutConnections();
        const began = performance.now();
        const response = await (at % 3 === 0 ? ask(`${path}/comments`, 'c') : ask(path));
        await response.arrayBuffer();
        seen.longest = Math.max(seen.longest, performance.now() - began);
        seen.statuses.set(response.status, (seen.statuses.get(response.status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 30 }, load));
    const refused = seen.statuses.get(503) ?? 0;
    context.diagnostic(`longest ${seen.longest.toFixed()} ms, ${refused} refused`);
    assert.ok(seen.longest < 2_000, `${seen.longest} ms`);
    // Of each connection at most the statement that was under way, and those that it stood for.
    assert.ok(refused <= 30, `${refused} refused`);
  });

  it('connects at most a few times a second to a front that only closes', async (context) => {
    const url = new URL(await server.createDatabase());
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
    const store = await open(context, url.href, 5);
    const { id } = await store.posts.create(draft);
    seen.isClosing = true;
    await server.cutConnections();
    seen.connections = 0;
    const end = performance.now() + 3_000;
    while (performance.now() < end) {
      const asked = performance.now();
      await assert.rejects(async () => store.posts.find(id), unavailable);
      assert.ok(performance.now() - asked < 3_000);
    }
    assert.ok(seen.connections < 60, `${seen.connections} connections`);
    seen.isClosing = false;
    await until(async () => Promise.resolve(store.posts.find(id)).then(Boolean, () => false), 3);
  });

  it('brings the tables up to date beside a reader, and stops no other node', async (context) => {
    const url = await server.createDatabase();
    const old = await open(context, url);
    const { id } = await old.posts.create(draft);
    await server.query(
      url,
      `ALTER TABLE inkwell.comments DROP COLUMN timeline;
       DROP INDEX inkwell.posts_of_status;
       DROP TABLE inkwell.login_failures, inkwell.upload_folder;
       UPDATE inkwell.schema_state SET version = 4`,
    );
    const dump = postgres(url, { max: 1, onnotice: () => undefined });
    context.after(() => dump.end({ timeout: 1 }));
    const lines: string[] = [];
    const log = (_level: string, event: string): number => lines.push(event);
    let opening: Promise<Store> | undefined;
    await dump.begin(async (reader) => {
      await reader`LOCK TABLE inkwell.comments IN ACCESS SHARE MODE`;
      opening = openStore(url, driverOptions({ log }));
      await until(() => lines.includes('waiting for the tables of the database'));
      for (let again = 0; again < 100; again += 1) {
        const asked = performance.now();
        await old.comments.ofPost(id).read();
        assert.ok(performance.now() - asked < 2_000);
      }
    });
    const store = await opening;
    context.after(() => store?.close());
    assert.ok(await store?.comments.add(id, 'c'));
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
    const read = await Promise.all(
      posts.map(async ({ id }) => (await store.comments.ofPost(id).read()).records.length),
    );
    // Demo posts have one or two.
    assert.ok(read.every((count) => count > 0));
  });
});
