/** A resumption by itself: what is left out, held, and read again. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Reader } from '../../dist/domain/readers.js';
import { AppError } from '../../dist/errors.js';
import type { Subscription } from '../../dist/graphql/engine.js';
import { Group } from '../../dist/graphql/events/group.js';
import { createLooks } from '../../dist/graphql/events/looks.js';
import { Resumption } from '../../dist/graphql/events/resumption.js';
import { SharedEvent } from '../../dist/graphql/events/shared-event.js';
import type { Subscriber } from '../../dist/graphql/events/subscriber.js';
import { createGate } from '../../dist/graphql/permits.js';
import { ConnectionMemory, MemoryPool } from '../../dist/memory-pool.js';
import { createScheduler } from '../../dist/scheduler.js';
import { startGraphql } from '../support/graphql.ts';
import { times } from '../support/lists.ts';
import { made } from '../support/made.ts';
import { until } from '../support/until.ts';

/** A resumption with a group and a client of the test's own. */
async function resumption(reader?: Reader) {
  const { store, topic, posts } = startGraphql({ posts: 1, comments: 1 });
  const postId = posts[0]?.id ?? '';
  const pool = new MemoryPool(1_000_000);
  const [first] = (await store.comments.ofPost(postId).read()).records;
  const [sent, logged]: [string[], unknown[]] = [[], []];
  /** The positions of those that were held; what is read from the store has none. */
  const held: number[] = [];
  /** What the client has not taken. */
  let taking: Promise<void> | undefined;
  let take = (): void => undefined;
  const subscriber: Subscriber = {
    memory: new ConnectionMemory(pool),
    next: ({ json, position }) => {
      sent.push(json.toString());
      if (position > 0) held.push(position);
      return true;
    },
    taken: () => taking,
    end: () => sent.push('end'),
  };
  const toJson: Subscription['toJson'] = async ({ content }) => {
    await nextIteration();
    return content;
  };
  const resume = { after: first?.id, postId: undefined };
  const deps = {
    store,
    commentAdded: topic,
    pool,
    log: (...line: unknown[]) => void logged.push(line),
    scheduler: createScheduler(),
    gate: createGate(1),
    engine: { hasOwners: reader !== undefined },
    line: (_: number, make: () => Promise<void>) => make(),
    looks: createLooks(store),
  };
  const group = new Group(deps, 1, () => undefined);
  // The test delivers the events.
  const events = { next: () => new Promise(() => undefined) } as never;
  void group.read(Promise.resolve({ events, toJson }), 'r');
  const viewer = { reader };
  const member = new Resumption({ subscriber, viewer, resume, group }, deps);
  group.subscribers.set(member, [member, viewer]);
  const published: SharedEvent[] = [];
  const now = { isCurrent: true };
  return {
    store,
    member,
    sent,
    logged,
    held,
    /** Whether what was known when the events were delivered is still so. */
    now,
    leave: () => group.leave(member),
    /** Stores and publishes; the group delivers later. */
    async add(content: string): Promise<void> {
      const added = made(await store.comments.add(postId, content));
      topic.publish(added);
      const facts = { id: added.id, position: topic.position, isSameIteration: false };
      const isCurrent = (): boolean => now.isCurrent;
      published.push(new SharedEvent(Buffer.from(content), pool, { ...facts, isCurrent }));
    },
    /** Delivers what was published, to the group. */
    deliver(): void {
      for (const event of published.splice(0)) member.next(event);
    },
    /** The client takes nothing until the returned function is called. */
    stall(): () => void {
      taking = new Promise((resolve) => (take = resolve));
      return () => {
        taking = undefined;
        take();
      };
    },
  };
}

describe('a resumption', () => {
  test('leaves out what the group delivers late, before and after it is live', async () => {
    const { member, sent, add, deliver } = await resumption();
    await add('a');
    await add('b');
    await member.run();
    assert.deepEqual(sent, ['a', 'b']);
    await add('c');
    deliver();
    assert.deepEqual(sent, ['a', 'b', 'c']);
  });

  test('holds what is published while the client takes the last page', async () => {
    const { member, sent, add, deliver, stall } = await resumption();
    await add('a');
    const take = stall();
    const running = member.run();
    await until('the page', () => sent.length === 1);
    await add('b');
    deliver();
    await add('c');
    assert.deepEqual(sent, ['a']);
    take();
    await running;
    deliver();
    assert.deepEqual(sent, ['a', 'b', 'c']);
  });

  test('drops what was held if those who may read it can be others, and reads it again', async () => {
    const { member, sent, held, now, add, deliver, stall } = await resumption();
    await add('a');
    const take = stall();
    const running = member.run();
    await until('the page', () => sent.length === 1);
    await add('b');
    deliver();
    now.isCurrent = false;
    take();
    await running;
    assert.deepEqual([sent, held], [['a', 'b'], []]);
  });

  for (const [count, length, isHeld] of [
    [63, 4, true],
    [64, 4, false],
    [1, 16_128, true],
    [1, 16_129, false],
    [2, 7_936, true],
    [2, 7_937, false],
  ] as const) {
    const what = isHeld ? 'are held' : 'are more than 16 KiB, and read again';
    test(`${count} events of ${length} bytes ${what}`, async () => {
      const { member, sent, held, add, deliver, stall } = await resumption();
      await add('a');
      const take = stall();
      const running = member.run();
      await until('the page', () => sent.length === 1);
      const texts = times(count).map((at) => `${at}`.padStart(length, 'x'));
      for (const text of texts) await add(text);
      deliver();
      take();
      await running;
      assert.equal(held.length, isHeld ? count : 0);
      await add('z');
      deliver();
      assert.deepEqual(sent, ['a', ...texts, 'z']);
    });
  }

  test('sends each once if the store fails in the middle of a page', async (t) => {
    const { store, member, sent, add } = await resumption({ id: undefined, isAdmin: true });
    for (const text of ['a', 'b', 'c']) await add(text);
    const find = t.mock.method(store.posts, 'find');
    // The first is of the place, then `b` and `c` ahead of `a`; after `a` was sent, `b` again.
    for (const call of [1, 4]) {
      find.mock.mockImplementationOnce(() => {
        throw new AppError('unavailable', 'away');
      }, call);
    }
    const startedAt = performance.now();
    const running = member.run();
    // The pause before the store is asked again keeps no process awake.
    await until('all are sent', () => sent.length >= 3);
    await running;
    assert.deepEqual(sent, ['a', 'b', 'c']);
    const took = performance.now() - startedAt;
    assert.ok(took > 990, `the store is asked again after ${took} ms`);
  });

  for (const [what, length, limits] of [
    ['100 comments', 1, [100, 100]],
    ['fewer after long ones, of which 33 are sent', 1_000, [100, 66, 66, 66]],
  ] as const) {
    test(`reads pages of ${what}`, async (t) => {
      const { store, member, add } = await resumption();
      for (const _ of times(120)) await add('x'.repeat(length));
      const read = t.mock.method(store.comments, 'after');
      await member.run();
      assert.deepEqual(
        read.mock.calls.map(({ arguments: [, { limit }] }) => limit),
        limits,
      );
    });
  }

  test('says nothing of a fault of the store after its client has left', async (t) => {
    const { store, member, sent, logged, leave } = await resumption();
    t.mock.method(store.comments, 'after', () => {
      leave();
      throw new Error('There is no listener.');
    });
    await member.run();
    assert.deepEqual([sent, logged], [[], []]);
  });

  test('reads nothing more when its client has left', async () => {
    const { member, sent, add, stall, leave } = await resumption();
    for (const at of times(250)) await add(`${at} ${'x'.repeat(1_000)}`);
    const take = stall();
    const running = member.run();
    await until('a part of the page', () => sent.length >= 32);
    await nextIteration();
    leave();
    take();
    await running;
    assert.equal(sent.length, 33);
  });
});
