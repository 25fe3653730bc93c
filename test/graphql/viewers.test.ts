/** The accounts of open subscriptions: what is looked up, and what follows (R36, R42, R44). */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Access } from '../../dist/auth/access.js';
import type { Subscriber } from '../../dist/graphql/events/subscriber.js';
import { createViewers } from '../../dist/graphql/events/viewers.js';
import type { Account } from '../../dist/store/model.js';
import { times } from '../support/lists.ts';

/** Subscribers of so many accounts, `0` and so on. */
function watch(t: TestContext, currentOf: Access['currentOf'], count = 1) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const viewers = createViewers(currentOf);
  t.after(() => viewers.close());
  const ended: string[] = [];
  const updated: Account[] = [];
  const accounts = times(count).map((at): Account => {
    return { id: `${at}`, username: `${at}`, email: '', roles: ['ADMIN'], passwordHash: 'old' };
  });
  const subscribers = accounts.map((account): Subscriber => {
    const end = (): void => {
      ended.push(account.username);
      viewers.remove(subscriber);
    };
    const rest = { memory: undefined as never, next: () => true, taken: () => undefined };
    const subscriber = { ...rest, end };
    viewers.add(subscriber, account, (current) => void updated.push(current));
    return subscriber;
  });
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second <= seconds; second += 1) {
      for (let turn = 0; turn < 10; turn += 1) await nextIteration();
      if (second < seconds) t.mock.timers.tick(1_000);
    }
  };
  return { ended, updated, accounts, subscribers, viewers, pass };
}

describe('the accounts of subscriptions', () => {
  it('are each asked for in a round, also when the lookup of one of them fails', async (t) => {
    const failing = new Set(['0', '40', '150']);
    const { ended, pass } = watch(
      t,
      ({ username }) => {
        if (failing.has(username)) throw new Error('the store failed');
        return undefined;
      },
      200,
    );
    await pass(5);
    assert.equal(ended.length, 197);
    failing.clear();
    await pass(5);
    assert.equal(ended.length, 200);
  });

  it('are not asked for again before all have been answered, nor told what came too late', async (t) => {
    const answers: ((account: Account | undefined) => void)[] = [];
    const answered = (): Promise<Account | undefined> =>
      new Promise((resolve) => void answers.push(resolve));
    const { ended, updated, subscribers, viewers, pass } = watch(t, answered, 65);
    await pass(15);
    // Also those that are asked for in a later iteration of the event loop.
    assert.equal(answers.length, 65);
    for (const subscriber of subscribers) viewers.remove(subscriber);
    for (const answer of answers.splice(0)) answer(undefined);
    await pass(5);
    assert.deepEqual([answers.length, ended, updated], [0, [], []]);
  });
});
