/** Accounts of a store: those that are given at its start, and those that it keeps (R20, R21). */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import { createAccounts } from '../../dist/store/shared.js';
import type { Account } from '../../dist/store/model.js';
import { openAccounts } from '../../dist/store/open.js';
import { initialData } from '../../dist/store/seed.js';
import type { StoredAccounts, Store } from '../../dist/store/store.js';
import { allOf, pluck } from '../support/lists.ts';
import { cases } from '../support/long.ts';
import { made } from '../support/made.ts';
import { driverOptions } from '../support/driver-options.ts';
import { durableStores, openOn } from '../support/stores.ts';

const toId = (number: number): string =>
  `018f3173-7000-7000-8000-${String(number).padStart(12, '0')}`;

const bob: Account = {
  id: toId(1),
  username: 'bob',
  email: 'bob@example.org',
  roles: ['USER', 'ADMIN'],
  passwordHash: 'scrypt$1$1$1$a$b',
};

interface Opened {
  readonly url: string;
  readonly store: Store;
  readonly kept: StoredAccounts;
}
type Open = (context: TestContext, given?: readonly Account[]) => Promise<Opened>;

async function openKept(context: TestContext, url: string): Promise<StoredAccounts> {
  const opened = await openAccounts(url, { ...driverOptions(), startSeconds: 5, mayCreate: true });
  context.after(() => opened.close());
  return opened.accounts;
}

for (const { name, skip, newUrl } of durableStores) {
  const open: Open = async (context, given) => {
    const url = await newUrl(context);
    const initial = given && initialData(given, false);
    const store = await openOn(context, url, initial && { initial });
    return { url, store, kept: await openKept(context, url) };
  };

  describe(`accounts ${name}`, { skip }, () => {
    describeChanges(open);
    describeTexts(open);
  });
}

function describeChanges(open: Open): void {
  it('are authors, and their posts outlive them', async (context) => {
    const { store, kept } = await open(context);
    assert.equal(await kept.add(bob), true);
    assert.equal(await kept.add({ ...bob, email: 'x@example.org', passwordHash: 'x' }), false);
    assert.deepEqual(await store.accounts.findForLogin('bob'), bob);
    const author = await store.authors.find(bob.id);
    assert.deepEqual([author?.name, author?.email], ['bob', bob.email]);
    const post = await store.posts.create({ title: 'a', content: 'b', authorId: bob.id });
    await kept.remove('bob');
    assert.deepEqual(await store.authors.find(bob.id), author);
    assert.deepEqual(await allOf(store.posts.ofAuthor(bob.id)), [post]);
    await kept.add({ ...bob, email: 'new@example.org' });
    assert.deepEqual(await store.authors.find(bob.id), { ...author, email: 'new@example.org' });
  });

  it('leave no name on comments that wait when they are erased (R51)', async (context) => {
    const { store, kept } = await open(context);
    await kept.add(bob);
    const post = made(await store.posts.create({ title: 'a', content: 'b', authorId: null }));
    const by = { name: 'Bob', authorId: bob.id, isPending: true };
    const { id } = made(await store.comments.add(post.id, 'c', by));
    await kept.remove('bob', { isErased: true });
    const { name, authorId } = made(await store.comments.pending.find(id));
    assert.deepEqual([name, authorId], [null, null]);
  });

  it('come after those that are given', async (context) => {
    const { url, store, kept } = await open(context);
    const given = await store.accounts.find('ann');
    assert.ok(given);
    await kept.add({ ...bob, username: 'ann' });
    assert.deepEqual(await store.accounts.find('ann'), given);
    assert.deepEqual(await store.accounts.findForLogin('ann'), given);
    const next = { ...bob, id: toId(2), username: 'next' };
    const later = await openOn(context, url, { initial: initialData([next], true) });
    // The initial data is taken once, the accounts of each start.
    assert.equal((await allOf(later.posts.all)).length, 3);
    assert.equal((await later.accounts.find('ann'))?.id, bob.id);
    assert.deepEqual(await later.accounts.find('next'), next);
    assert.equal((await later.authors.find(next.id))?.name, 'next');
    assert.equal(await kept.remove('ann'), true);
    assert.equal(await later.accounts.find('ann'), undefined);
  });
}

/** What `auth/accounts.ts` lets in, and what databases trip over. */
const anyName = fc
  .oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
    fc.constantFrom('␚', '␚0000', "'", '"', '%', '\\', '語'.repeat(256), '␚'.repeat(256), 'Bob'),
  )
  .filter((text) => text.length <= 256);

function describeTexts(open: Open): void {
  it('keep every text as it came, and are listed by name without a hash', async (context) => {
    const { store, kept } = await open(context, []);
    const names = new Set<string>();
    const property = fc.asyncProperty(anyName, anyName, async (username, text) => {
      const account = { ...bob, id: toId(names.size), username, email: text, roles: [text, '"'] };
      assert.equal(await kept.add(account), !names.has(username));
      if (names.has(username)) return;
      names.add(username);
      assert.deepEqual(await store.accounts.find(username), account);
    });
    await fc.assert(property, { numRuns: cases(100) });
    const listed = await kept.list();
    assert.deepEqual(new Set(pluck(listed, 'username')), names);
    const members = new Set(listed.flatMap(Object.keys));
    assert.deepEqual(members, new Set(['id', 'username', 'email', 'roles']));
    await kept.add({ ...bob, id: toId(100), username: 'zz' });
    await kept.add({ ...bob, id: toId(101), username: 'Za' });
    const inOrder = pluck(await kept.list(), 'username');
    assert.ok(inOrder.indexOf('Za') < inOrder.indexOf('zz'));
  });
}

it('a login asks the store once, whether its name is given, kept or nobody’s', async () => {
  const asked: string[] = [];
  const [given, kept] = ['both', 'kept'].map((username) => ({ ...bob, username }));
  const find = (username: string): Account | undefined =>
    asked.push(username) > 0 && username !== 'nobody' ? kept : undefined;
  const accounts = createAccounts([given ?? bob], { find });
  // At a token nothing has to be hidden.
  assert.equal(accounts.find('both'), given);
  for (const [name, found] of Object.entries({ both: given, kept, nobody: undefined }))
    assert.equal(await accounts.findForLogin(name), found, name);
  assert.deepEqual(asked, ['both', 'kept', 'nobody']);
});
