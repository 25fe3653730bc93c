/** Comments that wait lose the name and the account of who wrote them when that is erased (R51). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ann } from '../support/driver-options.ts';
import { made } from '../support/made.ts';
import { durableStores, openOn } from '../support/stores.ts';

for (const place of durableStores) {
  test(`a comment that waits ${place.name} is nobody's`, { skip: place.skip }, async (t) => {
    const { posts, comments, storedAccounts } = await openOn(t, await place.newUrl(t));
    const ben = { ...ann, id: crypto.randomUUID(), username: 'ben' };
    assert.equal(await storedAccounts?.add(ben), true);
    const post = made(await posts.create({ title: 'a', content: 'b', authorId: null }));
    const by = { name: 'Ben', authorId: ben.id, isPending: true };
    const { id } = made(await comments.add(post.id, 'c', by));
    assert.equal((await comments.pending.find(id))?.name, 'Ben');
    await storedAccounts?.remove('ben', { isErased: true });
    const { name, authorId } = made(await comments.pending.find(id));
    assert.deepEqual([name, authorId], [null, null]);
  });
}
