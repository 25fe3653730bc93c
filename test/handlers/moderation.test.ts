/** What is told of a comment that waits, and approving it (R48). */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Headers, openBlog } from '../support/drafts.ts';
import {
  ask,
  contents,
  type Json,
  missing,
  moderated,
  publish,
  read,
} from '../support/moderating.ts';
import { durableStores, stores } from '../support/stores.ts';
import { modernClient } from '../support/ws-clients.ts';

for (const place of stores) {
  describe(`moderation on a store ${place.name}`, { skip: place.skip }, () => {
    it('tells a writer that the comment waits, also when that is asked again', async (t) => {
      const blog = await openBlog(t, place, moderated('owners'));
      const post = await blog.post('PUBLISHED');
      const path = `/posts/${post}/comments`;
      for (const as of ['anonymous', 'other'] as const) {
        const body = { content: 'c', name: 'Ann' };
        const headers = { 'Idempotency-Key': `"${as}"`, Prefer: 'return=representation' };
        const told: unknown[] = [];
        for (const time of [0, 1]) {
          const response = await blog.send('POST', path, { body, as, headers });
          assert.equal(response.status, 201);
          assert.equal(response.headers.get('etag'), null);
          assert.equal(response.headers.get('preference-applied'), null);
          assert.equal(response.headers.get('idempotency-replayed'), time === 1 ? 'true' : null);
          const { id, ...rest } = (await response.json()) as { id: string };
          assert.equal(response.headers.get('location'), `/comments/${id}`);
          assert.deepEqual(rest, { ...body, status: 'PENDING' });
          told.push(id);
        }
        assert.equal(told[0], told[1]);
        const [id] = told as [string];
        assert.equal((await blog.send('GET', `/comments/${id}`, { as })).status, 404);
        assert.equal((await publish(blog, id, { as: 'author' })).status, 204);
        const again = await blog.send('POST', path, { body, as, headers });
        assert.equal(((await again.json()) as Json)['content'], 'c');
        assert.deepEqual((await blog.send('GET', `/comments/${id}`, { as })).status, 200);
        const input = `{ postId: "${post}", content: "d", name: null }`;
        const query = `mutation { addComment(commentInput: ${input}) }`;
        const result = await ask(blog, query, as);
        const { addComment } = result['data'] as { addComment: string };
        assert.deepEqual(result['extensions'], { pendingComments: [addComment] });
        const batch = await blog.send('POST', '/graphql', {
          body: [{ query: '{ __typename }' }, { query }] as object,
          as,
        });
        const [plain, second] = (await batch.json()) as [Json, Json];
        assert.deepEqual(Object.keys(plain), ['data']);
        assert.ok('extensions' in second);
        const { client, run } = modernClient(blog.one.port, {
          connectionParams: blog.people[as],
        });
        const [overSocket] = (await run(query)) as [Json];
        assert.ok('extensions' in overSocket);
        await client.dispose();
      }
    });

    it('lets the author of the post, and administrators, comment at once', async (t) => {
      const blog = await openBlog(t, place, moderated('writes'));
      const post = await blog.post('PUBLISHED');
      for (const as of ['author', 'admin'] as const) {
        const body = { content: as };
        const response = await blog.send('POST', `/posts/${post}/comments`, { body, as });
        assert.equal(await response.text(), '[]');
        const input = `{ postId: "${post}", content: "${as}" }`;
        const result = await ask(blog, `mutation { addComment(commentInput: ${input}) }`, as);
        assert.deepEqual(Object.keys(result), ['data']);
      }
      assert.equal(await contents(blog, `/posts/${post}/comments`), 'author author admin admin');
    });

    it('approves once, by those alone who may, with the conditions of a change', async (t) => {
      const blog = await openBlog(t, place, moderated('owners'));
      const post = await blog.post('PUBLISHED');
      const id = await blog.comment(post, 'waits', 'other');
      const patch = (body: object, headers: Headers = {}) =>
        blog.send('PATCH', `/comments/${id}`, { body, headers });
      assert.equal((await publish(blog, id, { as: 'anonymous' })).status, 401);
      assert.equal((await publish(blog, id, { as: 'other' })).status, 404);
      assert.equal((await publish(blog, missing, { as: 'admin' })).status, 404);
      for (const body of [{ status: 'PENDING' }, { status: null }, { status: 1 }]) {
        assert.equal((await patch(body)).status, 422, JSON.stringify(body));
      }
      const json = { 'Content-Type': 'application/json' };
      const other = await patch({ status: 'PUBLISHED' }, json);
      assert.equal(other.status, 415);
      assert.equal(other.headers.get('accept-patch'), 'application/merge-patch+json');
      const own = await blog.send('GET', `/comments/${id}`);
      const tag = own.headers.get('etag') ?? '';
      assert.equal(
        (await publish(blog, id, { as: 'author', headers: { 'If-Match': '"none"' } })).status,
        412,
      );
      for (const body of [{}, { content: 'other' }]) assert.equal((await patch(body)).status, 204);
      assert.equal((await blog.send('GET', `/comments/${id}`, { as: 'anonymous' })).status, 404);
      const keyed = { 'If-Match': tag, 'Idempotency-Key': 'approve' };
      for (const time of [0, 1]) {
        const response = await publish(blog, id, { as: 'author', headers: keyed });
        assert.equal(response.status, 204);
        const replayed = response.headers.get('idempotency-replayed');
        assert.equal(replayed, time === 1 ? 'true' : null);
      }
      assert.equal((await publish(blog, id, { as: 'admin' })).status, 204);
      assert.equal((await publish(blog, id, { as: 'other' })).status, 403);
      const found = (await read(blog, `/comments/${id}`)) as Json;
      assert.deepEqual(found, { id, content: 'waits', post: { id: post, title: 'a' } });
      const lines = blog.one.logged.filter(({ action }) => action === 'PATCH /comments/{id}');
      assert.deepEqual(
        lines.map(({ event, account, id: changed }) => [event, account, changed]),
        [
          ['change', 'author', id],
          ['change', 'author', id],
          ['change', 'author', id],
          ['change', 'admin', id],
          ['refused', 'other', id],
        ],
      );
    });
  });
}

describe('moderation', () => {
  it('ends where COMMENTS is changed, and goes on where that is changed back', async (t) => {
    const durable = durableStores.find(({ skip }) => skip === false);
    if (durable === undefined) return t.skip('no database is here');
    const STORE_URL = await durable.newUrl(t);
    const open = (COMMENTS: string) =>
      openBlog(
        t,
        { ...durable, newUrl: () => Promise.resolve(STORE_URL) },
        {
          env: { REQUIRE_AUTH: 'owners', COMMENTS },
        },
      );
    const first = await open('moderated');
    const post = await first.post('PUBLISHED');
    const id = await first.comment(post, 'waits', 'anonymous');
    const [one, two] = first.nodes;
    await one.stop();
    await two.stop();
    const second = await open('open');
    for (const as of ['anonymous', 'author', 'admin'] as const) {
      assert.equal((await second.send('GET', `/comments/${id}`, { as })).status, 404, as);
      assert.equal(await contents(second, `/posts/${post}/comments`, as), '', as);
    }
    await second.comment(post, 'at once', 'anonymous');
    await Promise.all(second.nodes.map(async (node) => node.stop()));
    const third = await open('moderated');
    assert.equal(await contents(third, `/posts/${post}/comments`, 'author'), 'at once waits');
    assert.equal((await publish(third, id, { as: 'author' })).status, 204);
    assert.equal(await contents(third, `/posts/${post}/comments`), 'at once waits');
  });
});
