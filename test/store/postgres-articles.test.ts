/** Changes of articles on PostgreSQL: one after the other, and in a bounded number (R16). */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { changing, valueOf } from '../support/article-texts.ts';
import { times } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { openOn } from '../support/stores.ts';

async function open(t: TestContext) {
  return openOn(t, await database.clearedDatabase());
}

test('changes of one article at once are made one after the other', { skip }, async (t) => {
  const { articles } = await open(t);
  const add = changing(({ count = 0, ...value }) => ({ ...value, count: Number(count) + 1 }));
  await Promise.all(times(12).map(async () => articles.change(1, add)));
  assert.equal(valueOf(await articles.find(1))?.['count'], 12);
});

/** Begins so many changes at once: the last one is refused, and no other. */
async function refusesTheLast(count: number, act: () => Promise<unknown>): Promise<void> {
  const changes = times(count).map(act);
  const atOnce = changes.map(async (change) =>
    Promise.race([change.then(() => 'changed', codeOf), nextIteration('waits')]),
  );
  const [first, ...others] = (await Promise.all(atOnce)).toReversed();
  assert.equal(first, 'overloaded');
  assert.ok(!others.includes('overloaded'));
  // On a slow machine some of them wait longer than a change may.
  await Promise.allSettled(changes);
}

test('at most 1,000 changes of single articles wait', { skip }, async (t) => {
  const { articles } = await open(t);
  await refusesTheLast(1_001, async () => articles.change(1, (article) => article));
});

test('at most 100 changes of all articles wait', { skip }, async (t) => {
  const { articles } = await open(t);
  await refusesTheLast(102, async () => articles.changeAll((all) => all));
});
