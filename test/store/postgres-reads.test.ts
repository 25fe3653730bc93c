/** How much of what requests ask at the same time one statement of PostgreSQL reads. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it, type TestContext } from 'node:test';
import { times } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { openOn } from '../support/stores.ts';

/** A store, and what kinds of statements it runs. */
async function openNoting(t: TestContext) {
  const statements: string[] = [];
  const url = await database.clearedDatabase();
  const store = await openOn(t, url, { timed: (kind) => statements.push(kind) });
  return { store, statements };
}

describe('a statement', { skip }, () => {
  it('reads 100 records each, and places of 1,000 comments', async (t) => {
    const { store, statements } = await openNoting(t);
    const ids = times(1_001).map(() => randomUUID());
    for (const [ask, count] of [
      [async () => Promise.all(ids.slice(0, 250).map(async (id) => store.posts.find(id))), 3],
      [async () => Promise.all(ids.map(async (id) => store.comments.placeOf(id))), 2],
    ] as const) {
      statements.length = 0;
      const found: readonly unknown[] = await ask();
      assert.ok(found.every((one) => one === undefined));
      assert.deepEqual(statements, Array(count).fill('read'));
    }
  });

  it('reads texts of up to 40,960 bytes together, longer ones each by itself', async (t) => {
    const { store, statements } = await openNoting(t);
    for (const [length, count] of [
      [40_000, 1],
      [41_000, 3],
    ] as const) {
      const content = 'x'.repeat(length);
      const create = async () => store.posts.create({ title: 'a', content, authorId: null });
      const made = [await create(), await create()];
      statements.length = 0;
      await Promise.all(made.map(async ({ id }) => store.posts.find(id)));
      assert.equal(statements.length, count, `${length}`);
    }
  });
});
