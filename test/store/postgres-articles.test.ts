/** Changes of articles on PostgreSQL: their queue, their attempts, and the lease (R16). */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextIteration, setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import type { RunInTurn } from '../../dist/scheduler.js';
import { changing, valueOf } from '../support/article-texts.ts';
import { withCode } from '../support/errors.ts';
import { times } from '../support/lists.ts';
import { testAtLength } from '../support/long.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { openSession } from '../support/session.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';

const retitle = changing({ title: 'a' });

async function open(t: TestContext) {
  const url = await database.clearedDatabase();
  const statements: string[] = [];
  const { articles } = await openOn(t, url, { timed: (kind) => statements.push(kind) });
  statements.length = 0;
  return { url, articles, statements, session: openSession(t, url) };
}

test('changes of one article at once are made one after the other', { skip }, async (t) => {
  const { articles, statements } = await open(t);
  const add = changing(({ count = 0, ...value }) => ({ ...value, count: Number(count) + 1 }));
  await Promise.all(times(12).map(async () => articles.change(1, add)));
  // None of them is overtaken: each reads once and writes once.
  assert.deepEqual(
    statements,
    times(12).flatMap(() => ['read', 'write']),
  );
  assert.equal(valueOf(await articles.find(1))?.['count'], 12);
});

test('a change that is overtaken three times takes a lease of a second', { skip }, async (t) => {
  const { url, articles: others, session } = await open(t);
  const leases: number[] = [];
  let other: Promise<unknown> | undefined;
  /** Before each attempt of this node is stored, another node changes the article, or tries to. */
  const overtake = async (): Promise<void> => {
    const [lease] = await session`SELECT count(*)::int AS count FROM inkwell.article_turn
      WHERE ends BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 second'`;
    leases.push(Number(lease?.['count']));
    if (leases.length < 4) await others.change(1, changing({ title: 'overtaken' }));
    else other ??= Promise.resolve(others.change(1, changing({ title: 'later' })));
  };
  const run: RunInTurn = async (work) => {
    const changed = await work();
    await overtake();
    return changed;
  };
  const { articles } = await openOn(t, url, { run });
  const seen: unknown[] = [];
  await articles.change(1, (article) => {
    seen.push(valueOf(article)?.title);
    return retitle(article);
  });
  // Before it, whoever comes first stores; with it nobody else does.
  assert.deepEqual(leases, [0, 0, 0, 1]);
  assert.deepEqual(seen.slice(1), ['overtaken', 'overtaken', 'overtaken']);
  await other;
  assert.equal(valueOf(await others.find(1))?.title, 'later');
  const left = await session`SELECT FROM inkwell.article_turn WHERE ends > clock_timestamp()`;
  assert.equal(left.length, 0, 'the lease is given back');
});

test('while another node has the lease nothing is stored', { skip }, async (t) => {
  const { articles, statements, session } = await open(t);
  await session`UPDATE inkwell.article_turn
    SET holder = gen_random_uuid(), ends = clock_timestamp() + interval '1 minute'`;
  let attempts = 0;
  const changing1 = articles.change(1, (article) => {
    attempts += 1;
    return retitle(article);
  });
  // After these it waits for the lease, and reads no more.
  await until('three attempts', () => attempts === 3);
  // Three writes, and then it asks for the lease, at most 50 ms after the last time.
  const writes = (): number => statements.filter((kind) => kind === 'write').length;
  await until('ten requests for the lease', () => writes() >= 13, 4);
  const [row] = await session`SELECT document FROM inkwell.articles WHERE id = 1`;
  assert.notEqual(valueOf({ id: 1, json: String(row?.['document']) })?.title, 'a');
  await session`UPDATE inkwell.article_turn SET ends = clock_timestamp()`;
  await changing1;
  assert.equal(valueOf(await articles.find(1))?.title, 'a');
  assert.equal(attempts, 4);
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
  await refusesTheLast(101, async () => articles.changeAll((all) => all));
});

test('of a change of all articles that is overtaken nothing is stored', { skip }, async (t) => {
  const { url, articles: others, session } = await open(t);
  const seen: unknown[] = [];
  const run: RunInTurn = async (work) => {
    const changed = await work();
    const [row] = await session`SELECT count(*)::int AS count FROM inkwell.articles
      WHERE document::json ->> 'title' = 'a'`;
    seen.push(row?.['count']);
    if (seen.length === 1) await others.change(1, changing({ title: 'overtaken' }));
    return changed;
  };
  const { articles } = await openOn(t, url, { run });
  await articles.changeAll((all) => all.map(retitle));
  assert.deepEqual(seen, [0, 0]);
  assert.equal(valueOf(await others.find(1))?.title, 'a');
});

testAtLength('a change that cannot be stored for 5 s is refused', async (t) => {
  const { articles, session } = await open(t);
  await session`UPDATE inkwell.article_turn
    SET holder = gen_random_uuid(), ends = clock_timestamp() + interval '1 minute'`;
  const since = performance.now();
  const late = pause(20_000, undefined, { ref: false });
  const change = Promise.race([articles.change(1, retitle), late]);
  await assert.rejects(change, withCode('overloaded'));
  const milliseconds = performance.now() - since;
  assert.ok(milliseconds >= 5_000 && milliseconds < 8_000, `${milliseconds} ms`);
});
