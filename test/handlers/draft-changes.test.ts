/** R44: a post begins and ceases to exist for others with its status, at once and on every node. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Blog, openBlog, type Person, toSeen } from '../support/drafts.ts';
import { stores } from '../support/stores.ts';

/** What somebody gets of a post on each node, twice: the second time it may be cached. */
async function statuses(blog: Blog, post: string, person: Person): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  const headers = { 'Content-Type': 'application/json', ...blog.people[person] };
  const query = `{ postById(postId: "${post}") { id } }`;
  for (const node of [...blog.nodes, ...blog.nodes]) {
    const list = await (await node.fetch('/posts?limit=1', { headers })).text();
    const body = JSON.stringify({ query });
    const result = await (await node.fetch('/graphql', { method: 'POST', headers, body })).text();
    const { status } = await node.fetch(`/posts/${post}/comments`, { headers });
    found.push([
      (await node.fetch(`/posts/${post}`, { headers })).status,
      status,
      list.includes(post),
      result.includes(post),
    ]);
  }
  return found;
}

for (const place of stores) {
  describe(`a post on a store ${place.name}`, { skip: place.skip }, () => {
    it('exists for others while it is published, from the change on', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const post = await blog.post('DRAFT');
      const all = (one: readonly unknown[]): readonly unknown[] => [one, one, one, one];
      for (const status of ['PUBLISHED', 'DRAFT', 'PUBLISHED', 'PENDING_MODERATION']) {
        await blog.setStatus(post, status);
        const isOpen = status === 'PUBLISHED';
        const expected = isOpen ? [200, 200, true, true] : [404, 404, false, false];
        for (const person of ['anonymous', 'other'] as const) {
          assert.deepEqual(await statuses(blog, post, person), all(expected), status);
        }
        assert.deepEqual(
          await statuses(blog, post, 'author'),
          all([200, 200, isOpen, true]),
          status,
        );
        assert.deepEqual(await statuses(blog, post, 'admin'), all([200, 200, true, true]), status);
      }
    });

    it('that others have commented under a key is, when hidden, as one that was removed', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const [hidden, removed] = [await blog.post('PUBLISHED'), await blog.post('PUBLISHED')];
      const repeat = async (post: string, content: string, Prefer = ''): Promise<string> => {
        const headers = { 'Idempotency-Key': post, ...(Prefer && { Prefer }) };
        const path = `/posts/${post}/comments`;
        const response = await blog.send('POST', path, { body: { content }, as: 'other', headers });
        const comment = response.headers.get('location')?.split('/').at(-1) ?? 'none';
        return toSeen(response, { [comment]: 'COMMENT' });
      };
      for (const [at, post] of [hidden, removed].entries())
        assert.match(await repeat(post, 'c'), /^\[201/, `post ${at}`);
      await blog.setStatus(hidden, 'DRAFT');
      await blog.remove(removed);
      for (const [content, prefer] of [['c'], ['c', 'return=representation'], ['d']] as const) {
        const expected = await repeat(removed, content, prefer);
        // R40: what was done before is not looked at again; another request is refused.
        assert.match(expected, content === 'c' ? /^\[201.*replayed/ : /^\[422/, content);
        assert.equal(await repeat(hidden, content, prefer), expected, content);
      }
    });
  });
}
