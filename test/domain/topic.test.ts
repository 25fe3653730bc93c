import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAddComment, createComments, createTopic } from '../../dist/domain/comments.js';
import type { Store } from '../../dist/store/store.js';
import { unweighed } from '../support/topic.ts';

test('a subscriber that names what it wants gets that and no other value', async () => {
  const topic = createTopic<number>({ ...unweighed, queueMax: 10 });
  const even = topic.subscribe((value) => value % 2 === 0);
  const waiting = even.next();
  for (const value of [1, 2, 3, 4]) topic.publish(value);
  assert.equal((await waiting).value, 2);
  assert.equal((await even.next()).value, 4);
  const further = even.next();
  topic.publish(5);
  topic.publish(6);
  assert.equal((await further).value, 6);
});

test('what comes next can be seen before it is taken', async () => {
  const topic = createTopic<number>({ ...unweighed, queueMax: 10 });
  const even = topic.subscribe((value) => value % 2 === 0);
  for (const value of [1, 2, 3, 4, 5, 6]) topic.publish(value);
  assert.deepEqual([even.ahead(0), even.ahead(3), even.ahead(9)], [[], [2, 4], [2, 4, 6]]);
  assert.equal((await even.next()).value, 2);
  assert.deepEqual(even.ahead(9), [4, 6]);
  await even.return?.();
  assert.deepEqual(even.ahead(9), []);
});

test('the position of a value counts those that nobody wanted', async () => {
  const topic = createTopic<number>({ ...unweighed, queueMax: 10 });
  const even = topic.subscribe((value) => value % 2 === 0);
  for (const value of [1, 2, 3, 4]) topic.publish(value);
  assert.deepEqual([(await even.next()).value, even.position], [2, 2]);
  assert.deepEqual([(await even.next()).value, even.position], [4, 4]);
});

test('a comment that was added before is not published again', async () => {
  const repeated = { id: '1', isRepeated: true } as const;
  const comments = { add: () => repeated } as unknown as Store['comments'];
  const published: unknown[] = [];
  const others = {} as Pick<Store, 'posts' | 'requests'>; // not used here
  const addComment = createAddComment({ comments, ...others }, (comment) => {
    published.push(comment);
  });
  assert.equal(await addComment(undefined, '1', 'c'), repeated);
  assert.deepEqual(published, []);
});

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

test('at most 4,096 comments wait for one subscriber', async () => {
  const store = { comments: {} } as unknown as Store; // not used here
  const { commentAdded } = createComments(store, 1_000_000_000);
  const [slow, full] = [commentAdded.subscribe(), commentAdded.subscribe()];
  const comment = { id: '1', content: '', createdAt: '', postId: '1' };
  for (let count = 0; count < 4_096; count += 1) commentAdded.publish(comment);
  assert.equal((await slow.next()).value, comment);
  commentAdded.publish(comment);
  assert.equal((await slow.next()).value, comment);
  await assert.rejects(async () => full.next(), { code: 'overloaded' });
});

for (const [length, count] of [
  [0, 4],
  [256, 2],
] as const) {
  test(`${count} comments of ${length} characters wait in 2,048 bytes, and no more`, () => {
    const store = { comments: {} } as unknown as Store; // not used here
    const { commentAdded } = createComments(store, 2_048);
    commentAdded.subscribe();
    const comment = { id: '1', content: 'x'.repeat(length), createdAt: '', postId: '1' };
    for (let waiting = 0; waiting < count; waiting += 1) commentAdded.publish(comment);
    assert.equal(commentAdded.size, 1);
    commentAdded.publish(comment);
    assert.equal(commentAdded.size, 0);
  });
}

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
