/** Who reads and changes what nobody has written (R36, R44). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkOwner, mayRead, toReader } from '../../dist/domain/readers.js';

test('a draft without an author exists for administrators alone, who alone change it', () => {
  const post = { status: 'DRAFT', authorId: null } as const;
  const mode = { hasOwners: true, isModerated: false };
  const account = { id: '2', username: 'a', email: 'a@b', passwordHash: '' };
  for (const [reader, isAllowed] of [
    [toReader(undefined, mode), false],
    [toReader({ ...account, roles: ['USER'] }, mode), false],
    [toReader({ ...account, roles: ['ADMIN'] }, mode), true],
  ] as const) {
    assert.equal(mayRead(reader, post), isAllowed);
    const change = (): void => checkOwner(reader, post.authorId);
    if (isAllowed) change();
    else assert.throws(change, { code: 'forbidden' });
  }
});
