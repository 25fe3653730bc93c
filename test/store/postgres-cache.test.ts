/** Cached responses over PostgreSQL, which other programs write to. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonTextResponse } from '../../dist/http/message.js';
import type { TrackedRecords } from '../../dist/records/tracked-records.js';
import { createResponseCache } from '../../dist/records/response-cache.js';
import { times } from '../support/lists.ts';
import { made as toMade } from '../support/made.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { openSession } from '../support/session.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Everybody reads everything. */
const reader = undefined;

test('commits are seen at once, in whichever order they were begun', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const server = await startServer(t, { env: { STORE_URL: url } });
  const todos = async (): Promise<string> => (await server.fetch('/api/todos')).text();
  const sessions = [openSession(t, url), openSession(t, url)] as const;
  const ids = await sessions[0]<{ id: string }>`SELECT id FROM inkwell.todos ORDER BY seq`;
  for (const [at, session] of sessions.entries()) {
    const id = ids[at]?.id ?? '';
    await session`BEGIN`;
    await session`UPDATE inkwell.todos SET title = title || 'x' WHERE id = ${id}`;
  }
  // The transaction with the higher number is committed first.
  for (const [at, session] of sessions.toReversed().entries()) {
    let before = '';
    for (const _ of times(3)) before = await todos();
    await session`COMMIT`;
    assert.notEqual(await todos(), before, `session ${at}`);
  }
});

test('a response is cached while nobody commits', { skip }, async (t) => {
  const store = await openOn(t, await database.emptyDatabase());
  const responses = createResponseCache({ store, run: 'run', bytesMax: 10_000 });
  let made = 0;
  const make = async (records: TrackedRecords) => {
    made += 1;
    await records.posts.list({}).read();
    return jsonTextResponse(200, '[]');
  };
  // Other tests may commit to other databases of the same server.
  await until('a response that is kept', async () => {
    const before = made;
    await responses.respond('key', make, { reader });
    return made === before;
  });
  await store.posts.create({ title: 'a', content: 'b', authorId: null });
  const before = made;
  await responses.respond('key', make, { reader });
  assert.equal(made, before + 1);
});

test('equal mutations that arrive together are carried out one by one', { skip }, async (t) => {
  const server = await startServer(t, { env: { STORE_URL: await database.emptyDatabase() } });
  const body = JSON.stringify({
    query: 'mutation { createPost(createPostInput: { title: "same", content: "same" }) }',
  });
  const create = async (): Promise<string> => {
    const headers = { 'Content-Type': 'application/json' };
    const response = await server.fetch('/graphql', { method: 'POST', headers, body });
    const { data } = (await response.json()) as { data: { createPost: string } };
    return data.createPost;
  };
  // The first ones open connections, so that the others arrive in the same iterations.
  for (const count of [50, 50, 50]) {
    const ids = await Promise.all(times(count).map(create));
    assert.equal(new Set(ids).size, count, `${count}`);
  }
});

test('a database that does not answer is no reason to send what is cached', { skip }, async (t) => {
  const store = await openOn(t, await database.emptyDatabase());
  const responses = createResponseCache({ store, run: 'run', bytesMax: 10_000 });
  const make = async (records: TrackedRecords) => {
    await records.posts.list({}).read();
    return jsonTextResponse(200, '[]');
  };
  await responses.respond('key', make, { reader });
  await store.close();
  await assert.rejects(async () => responses.respond('key', make, { reader }), {
    code: 'unavailable',
  });
});

test('a write of this node makes anew only what has read its records', { skip }, async (t) => {
  const store = await openOn(t, await database.emptyDatabase());
  const responses = createResponseCache({ store, run: 'run', bytesMax: 10_000 });
  const draft = { title: 'a', content: 'b', authorId: null };
  const post = toMade(await store.posts.create(draft));
  const other = await store.posts.create(draft);
  let made = 0;
  const madeBy = async (write: () => Promise<unknown>): Promise<number> => {
    const before = made;
    await write();
    await responses.respond(
      'key',
      async (records) => {
        made += 1;
        await records.posts.find(post.id);
        await records.comments.ofPost(post).read();
        return jsonTextResponse(200, '{}');
      },
      { reader },
    );
    return made - before;
  };
  const add = async (id: string) => store.comments.add(id, 'c');
  const elsewhere = [
    () => add(other.id),
    async () => Promise.all(times(3).map(async () => add(other.id))),
    async () => store.comments.remove((await add(other.id))?.id ?? ''),
    async () => store.posts.update(other.id, { title: 'x' }),
    async () => store.posts.create(draft),
    async () => store.posts.remove((await store.posts.create(draft)).id),
    async () => store.todos.create({ title: 'x', completed: false }),
    async () => store.articles.save({ id: 1, json: '{"title":"x","id":1}' }),
    async () => store.articles.change(1, ({ id }) => ({ id, json: '{"title":"y","id":1}' })),
  ];
  await madeBy(() => Promise.resolve());
  for (const write of elsewhere) {
    // Other tests may commit to other databases of the same server.
    await until('a response that is not made again', async () => (await madeBy(write)) === 0);
  }
  const here = [
    () => add(post.id),
    async () => store.comments.remove((await add(post.id))?.id ?? ''),
    async () => store.posts.update(post.id, { title: 'x' }),
    async () => store.posts.remove(post.id),
  ];
  for (const [at, write] of here.entries()) assert.equal(await madeBy(write), 1, `write ${at}`);
});

test(
  'what others and triggers change is read at once, also beside own writes',
  { skip },
  async (t) => {
    const url = await database.emptyDatabase();
    const env = { STORE_URL: url };
    const [server, node] = [await startServer(t, { env }), await startServer(t, { env })];
    const session = openSession(t, url);
    const create = async (): Promise<string> =>
      (await server.send('POST', '/posts', { title: 'a', content: 'b' })).headers.get('location') ??
      '';
    const [path, other] = [await create(), await create()];
    const id = path.slice('/posts/'.length);
    const add = async (on: typeof server, to: string, content: string) =>
      on.send('POST', `${to}/comments`, { content });
    await add(server, path, 'first');
    const query = `{ postById(postId: "${id}") { title comments { content } } }`;
    const reads = [
      async () => (await server.fetch(path)).text(),
      async () => (await server.fetch(`${path}/comments`)).text(),
      async () => (await server.send('POST', '/graphql', { query })).text(),
    ];
    const contains = async (text: string, at: readonly number[]): Promise<void> => {
      for (const read of at) assert.match((await reads[read]?.()) ?? '', new RegExp(text, 'i')); // GraphQL writes titles in capitals
    };
    const writes: readonly (readonly [string, readonly number[], () => Promise<unknown>])[] = [
      ['inplace', [1, 2], async () => session`UPDATE inkwell.comments SET content = 'inplace'`],
      ['renamed', [0, 2], async () => session`UPDATE inkwell.posts SET title = 'renamed'`],
      ['of node', [1, 2], async () => add(node, path, 'of node')],
      ['own one', [1, 2], async () => add(server, path, 'own one')],
      [
        'by trigger',
        [0, 2],
        async () => {
          await session.run(`CREATE FUNCTION public.rename() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN UPDATE inkwell.posts SET title = new.content; RETURN new; END $$;
          CREATE TRIGGER rename AFTER INSERT ON inkwell.comments
            FOR EACH ROW EXECUTE FUNCTION public.rename()`);
          for (const read of reads) await read();
          await add(server, other, 'by trigger');
        },
      ],
      ['again', [0, 2], async () => add(server, other, 'again')],
    ];
    for (const [text, at, write] of writes) {
      // Own writes to other records leave what was read in the cache.
      for (const _ of times(3)) {
        for (const read of reads) await read();
        await server.send('POST', '/api/todos', { title: text });
      }
      await write();
      await contains(text, at);
    }
  },
);
