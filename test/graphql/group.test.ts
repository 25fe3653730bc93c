/** Events where posts have owners (R44): what a group knows of a post when it delivers. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Reader } from '../../dist/domain/readers.js';
import { AppError } from '../../dist/errors.js';
import { Group } from '../../dist/graphql/events/group.js';
import { createLooks } from '../../dist/graphql/events/looks.js';
import type { Subscriber } from '../../dist/graphql/events/subscriber.js';
import { ConnectionMemory, MemoryPool } from '../../dist/memory-pool.js';
import { createScheduler } from '../../dist/scheduler.js';
import { createSerial } from '../../dist/serial.js';
import type { Comment } from '../../dist/store/model.js';
import { startGraphql } from '../support/graphql.ts';
import { gate } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { made } from '../support/made.ts';
import { until } from '../support/until.ts';

const stranger: Reader = { id: undefined, isAdmin: false };
const admin: Reader = { id: 'admin', isAdmin: true };

/** Groups on one line, over a store in memory whose posts are published. */
async function openGroups(postCount = 2) {
  const { store, topic, posts, logged } = startGraphql({
    posts: postCount,
    comments: 0,
    queueMax: 200,
  });
  for (const { id } of posts) await store.posts.update(id, { status: 'PUBLISHED' });
  const pool = new MemoryPool(1_000_000);
  const executed: string[] = [];
  const serial = createSerial();
  const steps = { beforeLine: async (): Promise<void> => undefined, afterWork: () => undefined };
  const scheduler = createScheduler();
  const run: typeof scheduler.run = async (work) => {
    const done = await scheduler.run(work);
    steps.afterWork();
    return done;
  };
  const deps = {
    engine: { hasOwners: true },
    pool,
    line: async (_length: number, make: () => Promise<void>) => {
      await steps.beforeLine();
      await serial.run(make);
    },
    looks: createLooks(store),
    scheduler: { run, turns: 0 },
    log: (_: unknown, event: string) => void logged.push({ event }),
  };
  const toJson = ({ content }: Comment): Promise<string> => {
    executed.push(content);
    return Promise.resolve(content);
  };
  return {
    store,
    posts: posts.map(({ id }) => id) as [string, string],
    executed,
    steps,
    logged,
    /** Joins a group of its own, or the given one; returns what is heard. */
    open(t: TestContext, { postId, readers }: { postId?: string; readers: readonly Reader[] }) {
      const group = new Group(deps, 1, () => undefined);
      const events = topic.subscribe(
        (comment) => postId === undefined || comment.postId === postId,
      );
      void group.read(Promise.resolve({ events, toJson }), 'r');
      t.after(() => group.end());
      return readers.map((_, at) => {
        const heard: string[] = [];
        const subscriber: Subscriber = {
          memory: new ConnectionMemory(pool),
          next: ({ json }) => heard.push(json.toString()) > 0,
          taken: () => undefined,
          end: () => heard.push('end'),
        };
        // As it is at each moment.
        const viewer = {
          get reader() {
            return readers[at];
          },
        };
        group.subscribers.set(subscriber, [subscriber, viewer]);
        return heard;
      });
    },
    /** Stores comments, and then publishes them. */
    async comment(postIds: string | readonly string[], content: string): Promise<void> {
      const stored: Comment[] = [];
      for (const id of [postIds].flat()) stored.push(made(await store.comments.add(id, content)));
      for (const comment of stored) topic.publish(comment);
    },
  };
}

describe('a group, where posts have owners', () => {
  it('holds no other group while the store does not answer for its post', async (t) => {
    const { store, posts, open, comment } = await openGroups();
    const [slow, fast] = posts;
    const find = store.posts.find.bind(store.posts);
    const answered = gate();
    t.mock.method(store.posts, 'find', async (id: string) => {
      if (id === slow) await answered.opened;
      return find(id);
    });
    const [ofSlow = []] = open(t, { postId: slow, readers: [stranger] });
    const [ofFast = []] = open(t, { postId: fast, readers: [stranger] });
    await comment(slow, 'one');
    await comment(fast, 'two');
    await until('the other group', () => ofFast.length === 1);
    assert.deepEqual([ofSlow, ofFast], [[], ['two']]);
    await comment(slow, 'three');
    answered.open();
    await until('the group', () => ofSlow.length === 2);
    assert.deepEqual(ofSlow, ['one', 'three']);
  });

  it('asks again while the store is away, and loses nothing', async (t) => {
    const { store, posts, open, comment, logged } = await openGroups();
    const [post] = posts;
    const find = t.mock.method(store.posts, 'find');
    find.mock.mockImplementationOnce(() => {
      throw new AppError('unavailable', 'away');
    });
    const [heard = []] = open(t, { readers: [stranger] });
    await comment(post, 'one');
    await comment(post, 'two');
    await until('both', () => heard.length === 2);
    assert.deepEqual([heard, logged], [['one', 'two'], []]);
  });

  it('does not execute what nobody may read', async (t) => {
    const { store, posts, executed, open, comment } = await openGroups();
    const [hidden, published] = posts;
    await store.posts.update(hidden, { status: 'DRAFT' });
    const [heard = []] = open(t, { readers: [stranger] });
    await comment(hidden, 'hidden');
    await comment(published, 'open');
    await until('the event', () => heard.length > 0);
    assert.deepEqual([heard, executed], [['open'], ['open']]);
  });

  for (const [what, change] of [
    ['hidden', (store, id) => store.posts.update(id, { status: 'PENDING_MODERATION' })],
    ['removed', (store, id) => store.posts.remove(id)],
  ] as readonly (readonly [
    string,
    (store: ReturnType<typeof startGraphql>['store'], id: string) => unknown,
  ])[]) {
    it(`delivers nothing of a post that is ${what} while the comment waits in the line`, async (t) => {
      const { store, posts, executed, steps, open, comment } = await openGroups();
      const [post, other] = posts;
      const heard = open(t, { readers: [stranger, admin] });
      const [reached, released] = [gate(), gate()];
      steps.beforeLine = () => (reached.open(), released.opened);
      await comment(post, 'one');
      await reached.opened;
      await change(store, post);
      released.open();
      await comment(other, 'two');
      await until('the last one', () => heard.every((texts) => texts.at(-1) === 'two'));
      const isHidden = what === 'hidden';
      assert.deepEqual(heard, [['two'], isHidden ? ['one', 'two'] : ['two']]);
      assert.deepEqual(executed, isHidden ? ['one', 'two'] : ['two']);
    });
  }

  it('looks again between two turns: who is served later may not read it any more', async (t) => {
    const { store, posts, steps, open, comment } = await openGroups();
    const [post, other] = posts;
    const heard = open(t, { readers: times(100).map((at) => (at === 80 ? admin : stranger)) });
    let works = 0;
    steps.afterWork = () => {
      works += 1;
      // The second work serves the first 64.
      if (works === 2) void store.posts.update(post, { status: 'DRAFT' });
    };
    await comment(post, 'one');
    await comment(other, 'two');
    await until('the last one', () => heard.every((texts) => texts.at(-1) === 'two'));
    const served = heard.flatMap((texts, at) => (texts.includes('one') ? [at] : []));
    assert.deepEqual(served, [...times(64), 80]);
    assert.ok(heard.every(({ length }) => length <= 2));
  });

  it('looks three times at most, if a post is changed all the time', async (t) => {
    const { store, posts, steps, open, comment } = await openGroups();
    const [post] = posts;
    const find = t.mock.method(store.posts, 'find');
    const [heard = []] = open(t, { readers: [stranger] });
    steps.beforeLine = async () => void (await store.posts.update(post, { title: 'b' }));
    await comment(post, 'one');
    await until('the event', () => heard.length > 0);
    assert.equal(find.mock.callCount(), 3);
  });

  it('uses a look for a second: another node may have changed the post', async (t) => {
    const { store, posts, steps, open, comment } = await openGroups();
    const [post] = posts;
    const find = t.mock.method(store.posts, 'find');
    const real = performance.now.bind(performance);
    let ahead = 0;
    t.mock.method(performance, 'now', () => real() + ahead);
    const [heard = []] = open(t, { readers: [stranger] });
    steps.beforeLine = () => {
      ahead += 1_000;
      steps.beforeLine = async () => undefined;
      return Promise.resolve();
    };
    await comment(post, 'one');
    await until('the event', () => heard.length > 0);
    assert.equal(find.mock.callCount(), 2);
  });

  it('reads the posts of 65 comments at the same time, once for all groups', async (t) => {
    const { store, posts, open, comment } = await openGroups(130);
    const asked: string[] = [];
    const answered = gate();
    const find = store.posts.find.bind(store.posts);
    t.mock.method(store.posts, 'find', async (id: string) => {
      asked.push(id);
      await answered.opened;
      return find(id);
    });
    const heard = [...times(3)].flatMap(() => open(t, { readers: [stranger] }));
    await comment(posts, 'one');
    await nextIteration();
    assert.equal(asked.length, 65);
    answered.open();
    await until('all', () => heard.every(({ length }) => length === 130));
    assert.deepEqual(asked.toSorted(), posts.toSorted());
  });

  it('asks who its subscribers are for each event', async (t) => {
    const { store, posts, open, comment } = await openGroups();
    const [hidden, other] = posts;
    await store.posts.update(hidden, { status: 'DRAFT' });
    const readers = [admin, stranger];
    const heard = open(t, { readers });
    await comment(hidden, 'one');
    await until('the first', () => heard[0]?.length === 1);
    readers.reverse();
    await comment(hidden, 'two');
    await comment(other, 'three');
    await until('the last one', () => heard.every((texts) => texts.at(-1) === 'three'));
    assert.deepEqual(heard, [
      ['one', 'three'],
      ['two', 'three'],
    ]);
  });
});

it('1,024 looks are kept', async () => {
  const { store, posts } = startGraphql({ posts: 1, comments: 0 });
  const looks = createLooks(store);
  const comments = times(1_025).map((at) => {
    return { id: `${at}`, content: '', createdAt: '', postId: posts[0]?.id ?? '' };
  });
  const found = comments.map((comment) => looks.of(comment, () => []));
  const isKept = (at: number): boolean => looks.of(comments[at] as Comment, () => []) === found[at];
  assert.deepEqual([isKept(1), isKept(1_024), isKept(0)], [true, true, false]);
  await found[0]?.post;
});
