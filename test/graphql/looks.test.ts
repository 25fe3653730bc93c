/** How often accounts and posts are looked up for events, and how many at a time. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLooks } from '../../dist/graphql/events/looks.js';
import type { Subscriber } from '../../dist/graphql/events/subscriber.js';
import { createViewers } from '../../dist/graphql/events/viewers.js';
import { Changes } from '../../dist/store/changes.js';
import type { Comment } from '../../dist/store/model.js';
import { times } from '../support/lists.ts';

test('of 65 accounts with subscriptions 64 are asked for at a time', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const asked: unknown[] = [];
  const open: (() => void)[] = [];
  const viewers = createViewers(async (account) => {
    asked.push(account);
    await new Promise<void>((resolve) => void open.push(resolve));
    return account;
  });
  for (const _ of times(65)) viewers.add({} as Subscriber, {} as never, () => undefined);
  t.mock.timers.tick(4_499);
  assert.equal(asked.length, 0);
  t.mock.timers.tick(1);
  // The others in the next iteration of the event loop.
  assert.equal(asked.length, 64);
  for (let rounds = 0; rounds < 10; rounds += 1) await turn();
  assert.equal(asked.length, 65);
  for (const answer of open) answer();
  viewers.close();
});

/** Looks with a clock, and how many posts were read. */
function startLooks(t: TestContext) {
  const state = { now: 0, reads: 0 };
  t.mock.method(performance, 'now', () => state.now);
  const find = (): undefined => void (state.reads += 1);
  const changes = new Changes();
  const looks = createLooks({ posts: { find } as never, changes: () => changes });
  const toComment = (id: string): Comment => ({ id, postId: 'p', content: '', createdAt: '' });
  const look = async (id: string, ahead: readonly string[] = [], since?: number) =>
    looks.of(toComment(id), () => ahead.map(toComment), since).post;
  return { state, look };
}

test('a look at a post holds for a second, and 1,024 looks are kept', async (t) => {
  const { state, look } = startLooks(t);
  await look('a');
  state.now = 999;
  await look('a');
  assert.equal(state.reads, 1);
  state.now = 1_000;
  await look('a');
  assert.equal(state.reads, 2);
  for (const id of times(1_024)) await look(`${id}`);
  await look('a');
  assert.equal(state.reads, 2 + 1_024 + 1);
});

test('who resumes gets no look that is older than the request', async (t) => {
  const { state, look } = startLooks(t);
  state.now = 500;
  await look('a', ['b']);
  assert.equal(state.reads, 2);
  state.now = 600;
  await look('a', ['b']);
  await look('a', ['b'], 500);
  assert.equal(state.reads, 2);
  await look('a', ['b'], 501);
  assert.equal(state.reads, 4);
});
