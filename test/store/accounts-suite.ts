/** What a durable driver has to prove of the accounts that it keeps (R20, R21). */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import type { DriverOptions } from '../../dist/store/driver.js';
import type { Account } from '../../dist/store/model.js';
import { openAccounts, openStore } from '../../dist/store/open.js';
import { initialData } from '../../dist/store/seed.js';
import type { StoredAccounts, Store } from '../../dist/store/store.js';
import { driverOptions } from './driver-suite.js';
import { allOf } from '../support/lists.js';
import { cases } from '../support/long.js';

export interface AccountsDriver {
  readonly name: string;
  /** Why its tests cannot run here, or false. */
  readonly skip: string | false;
  /** A place of its own, gone with the test or the tests of the file. */
  newUrl(context: TestContext): Promise<string>;
}

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

export function describeAccounts(driver: AccountsDriver): void {
  const openKept = async (context: TestContext, url: string): Promise<StoredAccounts> => {
    const opened = await openAccounts(url, {
      ...driverOptions(),
      startSeconds: 5,
      mayCreate: true,
    });
    context.after(() => opened.close());
    return opened.accounts;
  };
  const open = async (context: TestContext, options?: DriverOptions): Promise<Opened> => {
    const url = await driver.newUrl(context);
    const store = await openStore(url, options ?? driverOptions());
    context.after(() => store.close());
    return { url, store, kept: await openKept(context, url) };
  };

  describe(`accounts ${driver.name}`, { skip: driver.skip }, () => {
    describeChanges(open);
    describeTexts(open);

    it('are added once where two add the same one', async (context) => {
      const { url, kept } = await open(context);
      const other = await openKept(context, url);
      const adding = Array.from({ length: 20 }, async (_, at) => {
        const email = `${at}@example.org`;
        return (at % 2 === 0 ? kept : other).add({ ...bob, email });
      });
      const added = await Promise.all(adding);
      assert.equal(added.filter(Boolean).length, 1);
      assert.equal((await kept.find('bob'))?.email, `${added.indexOf(true)}@example.org`);
    });

    it('can be there before the first start, which gives the same one', async (context) => {
      const url = await driver.newUrl(context);
      const kept = await openKept(context, url);
      assert.equal(await kept.add({ ...bob, email: 'old@example.org' }), true);
      const store = await openStore(url, {
        ...driverOptions(),
        initial: initialData([bob], true),
      });
      context.after(() => store.close());
      assert.equal((await allOf(store.posts.all)).length, 3);
      assert.equal((await store.authors.find(bob.id))?.email, bob.email);
      assert.deepEqual(await store.accounts.find('bob'), bob);
    });

    it('can be there before the first records, which come whole and once', async (context) => {
      const url = await driver.newUrl(context);
      const kept = await openKept(context, url);
      assert.equal(await kept.add(bob), true);
      for (let start = 0; start < 2; start += 1) {
        const store = await openStore(url, driverOptions());
        context.after(() => store.close());
        assert.equal((await allOf(store.posts.all)).length, 3);
        assert.equal((await allOf(store.articles.all)).length, 2);
        assert.deepEqual(await store.accounts.find('bob'), bob);
        assert.equal((await store.authors.find(bob.id))?.name, 'bob');
      }
    });
  });
}

type Open = (context: TestContext, options?: DriverOptions) => Promise<Opened>;

function describeChanges(open: Open): void {
  it('are found as soon as they are added, and no longer than they are kept', async (context) => {
    const { store, kept } = await open(context);
    assert.equal(await store.accounts.find('bob'), undefined);
    assert.equal(await kept.add(bob), true);
    assert.deepEqual(await store.accounts.find('bob'), bob);
    assert.deepEqual(await store.accounts.findForLogin('bob'), bob);
    const passwordHash = 'scrypt$1$1$1$c$d';
    assert.equal(await kept.changePassword('bob', passwordHash), true);
    assert.deepEqual(await store.accounts.find('bob'), { ...bob, passwordHash });
    assert.equal(await kept.remove('bob'), true);
    assert.equal(await store.accounts.find('bob'), undefined);
    assert.equal(await store.accounts.findForLogin('bob'), undefined);
    assert.equal(await kept.remove('bob'), false);
    assert.equal(await kept.changePassword('bob', passwordHash), false);
  });

  it('are authors, and their posts outlive them', async (context) => {
    const { store, kept } = await open(context);
    await kept.add(bob);
    const author = await store.authors.find(bob.id);
    assert.deepEqual([author?.name, author?.email], ['bob', bob.email]);
    const post = await store.posts.create({ title: 'a', content: 'b', authorId: bob.id });
    await kept.remove('bob');
    assert.deepEqual(await store.authors.find(bob.id), author);
    assert.deepEqual(await allOf(store.posts.ofAuthor(bob.id)), [post]);
    await kept.add({ ...bob, email: 'new@example.org' });
    assert.deepEqual(await store.authors.find(bob.id), { ...author, email: 'new@example.org' });
  });

  it('of a name that is taken change nothing', async (context) => {
    const { store, kept } = await open(context);
    await kept.add(bob);
    assert.equal(await kept.add({ ...bob, email: 'x@example.org', passwordHash: 'x' }), false);
    assert.deepEqual(await kept.find('bob'), bob);
    assert.equal((await store.authors.find(bob.id))?.email, bob.email);
  });

  it('come after those that are given', async (context) => {
    const { url, store, kept } = await open(context);
    const given = await store.accounts.find('ann');
    assert.ok(given);
    await kept.add({ ...bob, username: 'ann' });
    assert.deepEqual(await store.accounts.find('ann'), given);
    assert.deepEqual(await store.accounts.findForLogin('ann'), given);
    const bare = await openStore(url, driverOptions({ initial: initialData([], false) }));
    context.after(() => bare.close());
    assert.equal((await bare.accounts.find('ann'))?.id, bob.id);
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
    const { store, kept } = await open(context, driverOptions({ initial: initialData([], false) }));
    const names = new Set<string>();
    await fc.assert(
      fc.asyncProperty(anyName, anyName, async (username, text) => {
        const account = { ...bob, id: toId(names.size), username, email: text, roles: [text, '"'] };
        assert.equal(await kept.add(account), !names.has(username));
        if (names.has(username)) return;
        names.add(username);
        assert.deepEqual(await store.accounts.find(username), account);
      }),
      { numRuns: cases(100) },
    );
    const listed = await kept.list();
    assert.deepEqual(new Set(listed.map(({ username }) => username)), names);
    assert.deepEqual(
      new Set(listed.flatMap(Object.keys)),
      new Set(['id', 'username', 'email', 'roles']),
    );
    await kept.add({ ...bob, id: toId(100), username: 'zz' });
    await kept.add({ ...bob, id: toId(101), username: 'Za' });
    const inOrder = (await kept.list()).map(({ username }) => username);
    assert.ok(inOrder.indexOf('Za') < inOrder.indexOf('zz'));
  });

  it('are found by their exact name, whatever is asked for', async (context) => {
    const { store, kept } = await open(context);
    await kept.add(bob);
    const long = 'bob'.repeat(400_000);
    for (const name of ['Bob', 'bob ', 'bob\0', '', '\0', '\ud800', 'constructor', long]) {
      assert.equal(await store.accounts.find(name), undefined, name.slice(0, 20));
      assert.equal(await store.accounts.findForLogin(name), undefined);
    }
  });
}
