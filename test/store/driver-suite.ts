/** What a durable driver has to prove beyond the contract: odd texts, and acts that race. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import { createIdSource } from '../../dist/domain/scalars.js';
import type { DriverOptions } from '../../dist/store/driver.js';
import type { Comment } from '../../dist/store/model.js';
import { initialData } from '../../dist/store/seed.js';
import type { Store } from '../../dist/store/store.js';
import { anyCharacter, anyCodeUnit } from '../support/texts.js';
import { testStore } from './contract.js';
import { allOf } from '../support/lists.js';
import { cases } from '../support/long.js';
import { changing, toDraft, valueOf } from '../support/article-texts.js';

export interface Driver {
  readonly name: string;
  /** Why its tests cannot run here, or false. */
  readonly skip: string | false;
  /** A store of its own, closed and gone with the test. */
  open(context: TestContext, options: DriverOptions): Promise<Store>;
}

const account = {
  id: '019b8d5e-9c00-7000-8000-000000000401',
  username: 'ann',
  email: 'ann@example.org',
  roles: ['USER'],
  passwordHash: 'scrypt$1$1$1$a$b',
};

export function driverOptions(more: Partial<DriverOptions> = {}): DriverOptions {
  return {
    createId: createIdSource(() => new Date()),
    now: () => '2026-02-03T04:05:06.7',
    initial: initialData([account], true),
    log: () => undefined,
    bytesMax: Number.MAX_SAFE_INTEGER,
    listenUrl: '',
    connectionsMax: 8,
    timeoutSeconds: 60,
    ...more,
  };
}

/** The initial data alone: no demo posts in the way. */
const bare = driverOptions({ initial: initialData([account], false) });

/** Texts that databases trip over, and any others. */
const anyText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  fc.string({ unit: anyCodeUnit }),
  fc.constantFrom('', ' ', '\0', 'a\0b', '\ud800', '\udc00\ud800', '␚', '␚0000', '\\u0000', '\r\n'),
);

export function describeDriver(driver: Driver): void {
  const open = (context: TestContext, options = bare): Promise<Store> =>
    driver.open(context, options);

  describe(`the store ${driver.name}`, { skip: driver.skip }, () => {
    testStore(driver.name, (context, initial) => driver.open(context, driverOptions({ initial })));

    it('holds the initial data', async (context) => {
      const { initial } = driverOptions();
      const store = await open(context, driverOptions());
      assert.deepEqual(await allOf(store.posts.all), initial.posts.toReversed());
      assert.deepEqual(await allOf(store.todos.all), initial.todos);
      assert.deepEqual(await allOf(store.articles.all), initial.articles);
      assert.deepEqual(await store.accounts.find('ann'), account);
      assert.equal(await store.accounts.find('constructor'), undefined);
      assert.equal((await store.authors.find(account.id))?.name, 'ann');
      const [first] = initial.posts;
      assert.deepEqual(
        await allOf(store.comments.ofPost(first?.id ?? '')),
        initial.comments.filter(({ postId }) => postId === first?.id),
      );
    });

    describePosts(open);
    describeComments(open);
    describeArticles(open);
  });
}

export type Open = (context: TestContext, options?: DriverOptions) => Promise<Store>;

function text(title: string): { title: string; content: string; authorId: null } {
  return { title, content: `About ${title}`, authorId: null };
}

async function addComment(store: Store, postId: string, content: string): Promise<Comment> {
  const comment = await store.comments.add(postId, content);
  assert.ok(comment);
  return comment;
}

function describePosts(open: Open): void {
  it('keeps every text as it came', async (context) => {
    const store = await open(context);
    await fc.assert(
      fc.asyncProperty(anyText, anyText, async (title, content) => {
        const { id } = await store.posts.create({ title, content, authorId: null });
        const found = await store.posts.find(id);
        assert.deepEqual([found?.title, found?.content], [title, content]);
        const comment = await addComment(store, id, content);
        assert.equal((await store.comments.find(comment.id))?.content, content);
      }),
      { numRuns: cases(120) },
    );
  });
}

function describeComments(open: Open): void {
  it('leaves no comment behind when its post goes at the same time', async (context) => {
    const store = await open(context);
    const post = await store.posts.create(text('a'));
    const adding = Array.from({ length: 20 }, (_, at) => store.comments.add(post.id, `c${at}`));
    const [removed, ...added] = await Promise.all([store.posts.remove(post.id), ...adding]);
    assert.equal(removed, true);
    for (const comment of added) {
      assert.equal(comment && (await store.comments.find(comment.id)), undefined);
    }
  });

  it('announces comments in the stored order, if it announces any', async (context) => {
    const store = await open(context);
    if (store.comments.watch === undefined) return;
    const post = await store.posts.create(text('a'));
    const heard: Comment[] = [];
    const all = new Promise<void>((resolve) => {
      const stop = store.comments.watch?.((comment) => {
        heard.push(comment);
        if (heard.length === 50) resolve();
      });
      context.after(() => stop?.());
    });
    await Promise.all(Array.from({ length: 50 }, (_, at) => addComment(store, post.id, `c${at}`)));
    await all;
    assert.deepEqual(heard, await allOf(store.comments.ofPost(post.id)));
  });
}

function describeArticles(open: Open): void {
  it('counts past ids that are taken, and gives none twice', async (context) => {
    const store = await open(context);
    const save = async (id?: number): Promise<number> =>
      (await store.articles.save(toDraft({ title: 't', ...(id !== undefined && { id }) }))).id;
    assert.equal(await save(4), 4);
    assert.equal(await save(5), 5);
    assert.equal(await save(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
    assert.deepEqual([await save(), await save(), await save()], [3, 6, 7]);
    const many = await Promise.all(
      Array.from({ length: 30 }, (_, at) => save(at % 3 ? undefined : at + 1_000)),
    );
    assert.equal(new Set(many).size, 30);
    const ids = (await allOf(store.articles.all)).map(({ id }) => id);
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    );
  });

  it('loses no change of articles that are changed at the same time', async (context) => {
    const store = await open(context);
    const count = changing((value) => ({ ...value, n: Number(value['n'] ?? 0) + 1 }));
    const one = Array.from({ length: 20 }, () => store.articles.change(1, count));
    const all = Array.from({ length: 10 }, () =>
      store.articles.changeAll((articles) => articles.map(count)),
    );
    await Promise.all([...one, ...all]);
    assert.equal(valueOf(await store.articles.find(1))?.['n'], 30);
    assert.equal(valueOf(await store.articles.find(2))?.['n'], 10);
  });

  it('changes nothing where the change throws, and tells what was thrown', async (context) => {
    const store = await open(context);
    const before = await allOf(store.articles.all);
    const refuse = (): never => {
      throw new RangeError('no');
    };
    const other = store.posts.create({ title: 'beside it', content: 'x', authorId: null });
    await assert.rejects(async () => store.articles.change(1, refuse), RangeError);
    await assert.rejects(async () => store.articles.changeAll(refuse), RangeError);
    assert.deepEqual(await allOf(store.articles.all), before);
    assert.ok(await store.posts.find((await other).id));
    assert.equal(await store.articles.change(99, refuse), undefined);
  });
}
