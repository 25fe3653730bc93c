import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createComments, createTopic, type PostAccess } from '../../dist/domain/comments.js';
import { unsigned } from '../support/anyone.ts';
import type { PlacedComment } from '../../dist/store/comments-after.js';
import type { Store } from '../../dist/store/store.js';
import { unweighed } from '../support/topic.ts';

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

test('who leaves is told at once, and who comes after the last one is followed anew', async () => {
  const ignore = (): void => undefined;
  let publish: (value: number) => void = ignore;
  const follow = (listener: typeof publish) => {
    publish = listener;
    return () => void (publish = ignore);
  };
  const topic = createTopic<number>({ ...unweighed, queueMax: 2, follow });
  const now = <T>(promise: Promise<T>) => Promise.race([promise, new Promise(setImmediate)]);
  for (const value of [1, 2]) {
    const subscriber = topic.subscribe();
    publish(value);
    assert.deepEqual(await now(subscriber.next()), { value, done: false });
    const pending = subscriber.next();
    void subscriber.return?.();
    assert.deepEqual(await now(pending), { value: undefined, done: true }, `${value}`);
  }
});
