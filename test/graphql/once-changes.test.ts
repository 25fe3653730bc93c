/** R40: a change under a key whose first request is done between its look-up and its checks. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mutations } from '../../dist/graphql/schema/mutations.js';

test('a change that finds its own effect was done meanwhile by its first request', async () => {
  const repeated = { id: '', isRepeated: true };
  const id = '00000000-0000-7000-8000-000000000001';
  for (const [name, found] of [
    ['deletePost', repeated],
    ['deleteComment', repeated],
    ['deletePost', undefined],
  ] as const) {
    const results = [undefined, found];
    const none = { find: () => Promise.resolve(undefined) };
    const context = {
      writes: { next: () => ({ key: 'k', fingerprint: 'f' }), note: () => undefined, replays: 0 },
      deps: { store: { requests: { find: () => results.shift() } } },
      records: { posts: none, comments: none },
    };
    const mutate = mutations[name] as (...all: readonly unknown[]) => Promise<string>;
    const deleted = mutate(undefined, { id }, context, undefined);
    if (found === undefined) await assert.rejects(deleted, { code: 'not_found' });
    else assert.equal(await deleted, id);
    assert.equal(results.length, 0);
  }
});
