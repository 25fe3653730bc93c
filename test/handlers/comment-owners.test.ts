/** Comments are removed by the author of their post, with `owners` (R36). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBlog } from '../support/drafts.ts';
import { inMemory } from '../support/stores.ts';

test('authors remove comments on their own posts, whoever wrote them; ADMIN removes all', async (t) => {
  const blog = await openBlog(t, inMemory, 'owners');
  for (const [author, other, refusal] of [
    ['admin', 'author', 403],
    ['author', 'other', 403],
    ['author', 'admin', 204],
  ] as const) {
    const post = await blog.post('DRAFT', author);
    const published = { body: { status: 'PUBLISHED' }, as: author };
    assert.equal((await blog.send('PATCH', `/posts/${post}`, published)).status, 204);
    for (const [as, expected] of [
      ['anonymous', 401],
      [other, refusal],
      [author, 204],
    ] as const) {
      const comment = await blog.comment(post, 'c', other);
      assert.equal((await blog.send('DELETE', `/comments/${comment}`, { as })).status, expected);
    }
  }
});
