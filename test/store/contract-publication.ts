/** What every driver keeps of published posts (R49): part of contract.test.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import type { Post } from '../../dist/store/model.js';
import type { List, Page, Store } from '../../dist/store/store.js';
import { allOf, pluck } from '../support/lists.ts';
import { cases } from '../support/long.ts';
import { made } from '../support/made.ts';
import { newOnce } from './contract-requests.ts';
import { text } from './contract-posts.ts';

/** A store without posts, with this clock, which ends with the test. */
type Open = (context: TestContext, now: () => Date) => Promise<Store>;

const [ada, bob] = ['a', 'b'].map((end) => `00000000-0000-7000-8000-00000000000${end}`);
const publish = { status: 'PUBLISHED' } as const;
const withdraw = { status: 'DRAFT' } as const;

export function testPublication(open: Open): void {
  test('published posts come newest first by their dates, then by their ids', async (t) => {
    let seconds = 0;
    const { posts } = await open(t, () => new Date(Date.UTC(2026, 2, 1, 0, 0, seconds)));
    const ids: string[] = [];
    for (const title of ['a', 'b', 'c', 'd', 'e'])
      ids.push((await posts.create({ ...text(title), authorId: ada ?? '' })).id);
    const [a = '', b = '', c = '', d = '', e = ''] = ids;
    // Two at a time: the order in one second is that of creation.
    for (const id of [d, a, e, c]) {
      await posts.update(id, publish);
      seconds += id === a ? 1 : 0;
    }
    const lists = [posts.ofStatus('PUBLISHED'), posts.ofAuthor(ada ?? '', 'PUBLISHED')];
    const listed = async (after?: string, limit = 9) => {
      const pages = await Promise.all(lists.map(async (list) => list.read({ after, limit })));
      const [first, second] = pages.map(({ records }) => pluck(records, 'id'));
      assert.deepEqual(first, second);
      return first;
    };
    assert.deepEqual(await listed(), [e, c, d, a]);
    assert.deepEqual(await listed(c), [d, a]);
    assert.deepEqual(await listed(d, 1), [a]);
    // A post that is withdrawn keeps its date and its place, which pages may begin after.
    seconds += 9;
    await posts.update(d, withdraw);
    assert.deepEqual(await listed(), [e, c, a]);
    assert.deepEqual(await listed(d), [a]);
    await posts.update(d, publish);
    assert.deepEqual(await listed(), [e, c, d, a]);
    await posts.remove(c);
    assert.deepEqual(await listed(c), [d, a]);
    // One that never was published stands where it would stand if that had been when it was made.
    assert.deepEqual(await listed(b), [a]);
    await posts.update(b, publish);
    assert.deepEqual(await listed(b), [e, d, a]);
    // All posts, and those with another status, are in the order of creation (R2).
    await posts.update(a, withdraw);
    await posts.update(e, withdraw);
    assert.deepEqual(pluck(await allOf(posts.all), 'id'), [e, d, b, a]);
    assert.deepEqual(pluck(await allOf(posts.ofAuthor(ada ?? '')), 'id'), [e, d, b, a]);
    assert.deepEqual(pluck(await allOf(posts.ofStatus('DRAFT')), 'id'), [e, a]);
    assert.deepEqual(await listed('ffffffff-ffff-7fff-8fff-ffffffffffff'), [b, d]);
    assert.deepEqual(await listed('00000000-0000-7000-8000-000000000000'), []);
  });

  test('pages of published posts are as they should be, whatever changes between them', async (t) => {
    let now = Date.UTC(2026, 2, 1);
    const { posts } = await open(t, () => new Date(now));
    const model = createModel(posts);
    const property = fc.asyncProperty(fc.array(anyAct, { maxLength: 40 }), async (acts) => {
      for (const act of acts) {
        now += act.milliseconds;
        await model[act.kind](act);
      }
    });
    await fc.assert(property, { numRuns: cases(160) });
  });

  test('a post keeps the date at which it was published first', async (t) => {
    let minute = 10;
    const now = (): string => `2026-01-01T00:${minute}:00`;
    const clock = (): Date => new Date(`${now()}Z`);
    const { posts } = await open(t, clock);
    const { id } = made(await posts.create(text('a')));
    const dateAfter = async (write: () => unknown): Promise<string | null | undefined> => {
      minute += 1;
      await write();
      return (await posts.find(id))?.publishedAt;
    };
    const seen = { ...text('a'), status: 'PENDING_MODERATION' as const };
    assert.equal(await dateAfter(() => posts.update(id, { status: seen.status })), null);
    assert.equal(await dateAfter(() => posts.update(id, { title: 'b' })), null);
    // Refused: nothing changes.
    assert.equal(await dateAfter(() => posts.update(id, publish, { expected: seen })), null);
    assert.equal(await dateAfter(() => posts.update(id, publish, { once: newOnce() })), now());
    const publishedAt = now();
    const changes = [{ title: 'c' }, publish, withdraw, publish];
    for (const change of changes)
      assert.equal(await dateAfter(() => posts.update(id, change)), publishedAt);
    const other = made(await posts.create(text('other')));
    const { title, content, status } = other;
    await posts.update(other.id, publish, { expected: { title, content, status } });
    assert.equal((await posts.find(other.id))?.publishedAt, now());
  });
}

/** What is done with a post, or with a list of them, by numbers that choose one. */
const anyAct = fc.record({
  kind: fc.constantFrom(
    ...(['create', 'create', 'publish', 'publish', 'withdraw', 'edit', 'remove'] as const),
    ...(['read', 'read', 'next', 'next'] as const),
  ),
  /** Since the last one: dates are equal, or close, or far. */
  milliseconds: fc.constantFrom(0, 0, 1, 10, 100, 1_000, 60_000),
  which: fc.nat(),
  author: fc.constantFrom(ada, bob, null),
  limit: fc.integer({ min: 1, max: 3 }),
});
type Act = typeof anyAct extends fc.Arbitrary<infer T> ? T : never;

interface Known {
  readonly id: string;
  readonly authorId: string | null;
  /** Where it stands: the date, in milliseconds, at which it was published, else created. */
  at: number;
  isDated: boolean;
  isPublished: boolean;
}

/** The published posts in their order, behind one of them. */
function behind(known: readonly Known[], authorId: string | null, last?: Known): readonly Known[] {
  const compare = (one: Known, two: Known): number =>
    two.at - one.at || (two.id < one.id ? -1 : Number(two.id > one.id));
  return known
    .filter((post) => post.isPublished && (authorId === null || post.authorId === authorId))
    .filter((post) => last === undefined || compare(last, post) < 0)
    .toSorted(compare);
}

/** Does the same to the store and to a list of what it should hold, and compares what is read. */
function createModel(posts: Store['posts']) {
  const known: Known[] = [];
  const dateOf = (date: string | null | undefined): number => Date.parse(`${date}Z`);
  const choose = (which: number): Known | undefined => known[which % known.length];
  interface Opened {
    readonly next: NonNullable<Page<Post>['next']>;
    readonly author: string | null;
    readonly last: Known;
    readonly limit: number;
  }
  let opened: Opened[] = [];
  const check = (
    { records, next }: Page<Post>,
    { author, last, limit }: Omit<Opened, 'next' | 'last'> & { readonly last?: Known | undefined },
  ): void => {
    const expected = behind(known, author, last);
    assert.deepEqual(pluck(records, 'id'), pluck(expected.slice(0, limit), 'id'));
    assert.equal(next !== undefined, expected.length > limit);
    const end = expected[limit - 1];
    // A copy: the page after it begins where the post was, whatever becomes of it.
    if (next && end) opened = [...opened.slice(-3), { next, author, last: { ...end }, limit }];
  };
  const listOf = (author: string | null): List<Post> =>
    author === null ? posts.ofStatus('PUBLISHED') : posts.ofAuthor(author, 'PUBLISHED');
  return {
    async create({ author }: Act) {
      const { id, createdAt } = made(
        await posts.create({ ...text('a'), authorId: author ?? null }),
      );
      const at = dateOf(createdAt);
      known.push({ id, authorId: author ?? null, at, isDated: false, isPublished: false });
    },
    async publish({ which }: Act) {
      const post = choose(which);
      if (post === undefined || !(await posts.update(post.id, publish))) return;
      const { publishedAt } = (await posts.find(post.id)) ?? {};
      if (!post.isDated) post.at = dateOf(publishedAt);
      assert.equal(dateOf(publishedAt), post.at);
      Object.assign(post, { isDated: true, isPublished: true });
    },
    async withdraw({ which }: Act) {
      const post = choose(which);
      if (post !== undefined && (await posts.update(post.id, withdraw))) post.isPublished = false;
    },
    async edit({ which }: Act) {
      const post = choose(which);
      if (post !== undefined) await posts.update(post.id, { title: `${which}` });
    },
    async remove({ which }: Act) {
      const post = choose(which);
      if (post === undefined) return;
      await posts.remove(post.id);
      post.isPublished = false;
    },
    async read({ which, author = null, limit }: Act) {
      const last = which % 3 === 0 ? undefined : choose(which);
      const page = await listOf(author).read({ after: last?.id, limit });
      check(page, { author, last, limit });
    },
    async next({ which }: Act) {
      const from = opened[which % opened.length];
      if (from !== undefined) check(await from.next(), from);
    },
  };
}
