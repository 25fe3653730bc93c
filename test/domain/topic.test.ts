import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createComments, createTopic, type PostAccess } from '../../dist/domain/comments.js';
import { unsigned } from '../support/anyone.ts';
import type { PlacedComment } from '../../dist/store/comments-after.js';
import type { Store } from '../../dist/store/store.js';
import { unweighed } from '../support/topic.ts';

test('return settles a call that waits and leaves the topic', async () => {
  const topic = createTopic<number>({ ...unweighed, queueMax: 2 });
  const subscriber = topic.subscribe();
  const waiting = subscriber.next();
  assert.equal(topic.size, 1);
  await subscriber.return?.();
  assert.equal(topic.size, 0);
  assert.equal((await waiting).done, true);
  assert.equal((await subscriber.next()).done, true);
});

test('a subscriber whose queue is full is dropped with one error; the others lose nothing', async () => {
  const topic = createTopic<number>({ ...unweighed, queueMax: 2 });
  const slow = topic.subscribe();
  const quick = topic.subscribe();
  for (const value of [1, 2, 3]) {
    topic.publish(value);
    assert.equal((await quick.next()).value, value, `${value}`);
  }
  assert.equal(topic.size, 1);
  await assert.rejects(slow.next(), { code: 'overloaded' });
  assert.equal((await slow.next()).done, true);
  topic.publish(4);
  assert.equal((await quick.next()).value, 4);
});

test('the post of a comment is read once for all, as it is when the event is made (R44)', async () => {
  let publish: (placed: PlacedComment) => void = () => undefined;
  const stored: PostAccess[] = [{ status: 'DRAFT', authorId: 'a' }];
  let reads = 0;
  const find = (): unknown => {
    reads += 1;
    if (stored.length === 0) throw new Error('The store is away.');
    return { id: '1', content: 'long', ...stored[0] };
  };
  const watch = (listener: typeof publish) => {
    publish = listener;
    return () => undefined;
  };
  const store = { comments: { watch }, posts: { find } } as unknown as Store;
  const { commentAdded } = createComments(store, { queueBytesMax: 1_000_000, hasOwners: true });
  const groups = [commentAdded.subscribe(), commentAdded.subscribe()];
  publish({ place: 1, comment: { id: '1', content: '', createdAt: '', postId: '1', ...unsigned } });
  stored[0] = { status: 'PUBLISHED', authorId: 'a' };
  for (const [at, group] of groups.entries()) {
    const { post } = (await group.next()).value ?? {};
    assert.deepEqual(await post, { status: 'DRAFT', authorId: 'a' }, `group ${at}`);
  }
  assert.equal(reads, 1);
  stored.pop();
  publish({ place: 2, comment: { id: '2', content: '', createdAt: '', postId: '1', ...unsigned } });
  const { post } = (await groups[0]?.next())?.value ?? {};
  assert.equal(await post, undefined);
});

test('values that wait are bounded in bytes too; one may wait however long it is', async () => {
  const bytesOf = (value: string): number => value.length;
  const topic = createTopic<string>({ queueMax: 10, queueBytesMax: 4, bytesOf });
  const slow = topic.subscribe();
  topic.publish('longer');
  assert.equal((await slow.next()).value, 'longer');
  topic.publish('ab');
  topic.publish('cd');
  assert.equal((await slow.next()).value, 'ab');
  topic.publish('ef');
  assert.equal(topic.size, 1);
  topic.publish('g');
  assert.equal(topic.size, 0);
  await assert.rejects(slow.next(), { code: 'overloaded' });
});

test('a subscriber that leaves while a value goes round takes nothing from the others', async () => {
  const topic = createTopic<number>({ ...unweighed, queueMax: 4 });
  const subscribers = Array.from({ length: 5 }, () => topic.subscribe());
  const received: unknown[] = [];
  const reading = subscribers.map(async (subscriber, index) => {
    const { value } = await subscriber.next();
    received.push(value);
    await subscribers[(index + 1) % 5]?.return?.();
  });
  topic.publish(7);
  await Promise.all(reading);
  assert.deepEqual(received, [7, 7, 7, 7, 7]);
});

test('a source is followed while there are subscribers', async () => {
  const followers = new Set<(value: number) => void>();
  const publish = (value: number): void => followers.forEach((follower) => follower(value));
  const follow = (follower: (value: number) => void): (() => void) => {
    followers.add(follower);
    return () => void followers.delete(follower);
  };
  const topic = createTopic<number>({ ...unweighed, queueMax: 2, follow });
  assert.equal(followers.size, 0);
  for (const times of [1, 2]) {
    const first = topic.subscribe();
    const second = topic.subscribe();
    publish(times);
    for (const [at, each] of [first, second].entries()) {
      assert.deepEqual(await each.next(), { value: times, done: false }, `number ${at}`);
      assert.equal(followers.size, 1, `number ${at}`);
      await each.return?.();
      await each.return?.();
    }
    assert.equal(followers.size, 0, `${times}`);
  }
  const slow = topic.subscribe();
  for (const value of [1, 2, 3]) publish(value);
  assert.equal(followers.size, 0, 'left with its last subscriber, which was too slow');
  await assert.rejects(slow.next(), { code: 'overloaded' });
});
