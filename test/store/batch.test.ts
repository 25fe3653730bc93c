import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { createLoader, individually } from '../../dist/store/postgres/batch.js';
import { lost } from '../../dist/store/postgres/faults.js';
import type { Statement } from '../../dist/store/postgres/connection.js';
import { createInsert, type InsertDeps, toInserts } from '../../dist/store/postgres/inserts.js';
import type { Insertion } from '../../dist/store/postgres/requests.js';
import type { Once } from '../../dist/store/store.js';
import { gate } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { until } from '../support/until.ts';

/** Statements that wait for their gates; a long item has to be loaded individually. */
function createSlow(costMax = 2) {
  const gates = { many: gate(), one: gate() };
  const running = { many: 0, one: 0, max: 0 };
  const wait = async <T>(kind: 'many' | 'one', result: T): Promise<T> => {
    running[kind] += 1;
    running.max = Math.max(running.max, running.many + running.one);
    await gates[kind].opened;
    running[kind] -= 1;
    return result;
  };
  const ask = createLoader<string, string>({
    costMax,
    costOf: () => 1,
    loadMany: async (items) =>
      wait(
        'many',
        items.map((item) => (item.startsWith('long') ? individually : item)),
      ),
    loadOne: async (item) => wait('one', item),
  });
  /** Asks for eight items, and expects each to get its own result. */
  const askAll = async (kind: string): Promise<void> => {
    const items = times(8).map((at) => `${kind} ${at}`);
    assert.deepEqual(await Promise.all(items.map(ask)), items);
  };
  return { gates, running, ask, askAll };
}

test('a hundred thousand items wait, one more is refused', async () => {
  const { gates, ask } = createSlow(10_000);
  const all = times(100_000).map((at) => ask(`${at}`));
  const more = ask('more').then(() => 'taken', codeOf);
  assert.equal(await Promise.race([more, pause(1_000, 'waits')]), 'overloaded');
  for (const opened of [gates.many, gates.one]) opened.open();
  assert.equal((await Promise.all(all)).length, 100_000);
});

test('items that are loaded individually hold up no others', async () => {
  const { gates, running, askAll } = createSlow();
  gates.many.open();
  const long = askAll('long');
  await until('two statements', () => running.one === 2);
  await askAll('short');
  assert.deepEqual(running, { many: 0, one: 2, max: 3 });
  gates.one.open();
  await long;
});

test('items that are loaded together hold up none that is loaded individually', async () => {
  const { gates, running, ask, askAll } = createSlow();
  gates.many.open();
  const long = ask('long');
  await until('the end of one statement', () => running.one === 1);
  gates.many = gate();
  const short = askAll('short');
  await until('two statements of the other kind', () => running.many === 2);
  gates.one.open();
  assert.equal(await long, 'long');
  assert.equal(running.max, 3);
  gates.many.open();
  await short;
});

test('what came a second later is not joined, and so not refused for having waited too long', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const opened = gate();
  const sent: { items: readonly string[]; askedAt: number }[] = [];
  const ask = createLoader<string, number>({
    costMax: 10,
    costOf: () => 1,
    async loadMany(items, askedAt) {
      sent.push({ items, askedAt });
      await opened.opened;
      return items.map(() => askedAt);
    },
    loadOne: () => Promise.reject(new Error('Nothing is loaded individually.')),
  });
  const first = ask('first');
  await until('one statement', () => sent.length === 1);
  const second = ask('second');
  await until('two statements', () => sent.length === 2);
  const later: Promise<number>[] = [];
  for (now of [0, 500, 1_000, 1_999, 2_000]) later.push(ask('equal'), ask(`at ${now}`));
  opened.open();
  assert.deepEqual(await Promise.all([first, second]), [0, 0]);
  assert.deepEqual(
    await Promise.all(later),
    [0, 0, 0, 0, 1_000, 1_000, 1_000, 1_000, 2_000, 2_000],
  );
  assert.deepEqual(sent.slice(2), [
    { items: ['equal', 'at 0', 'at 500'], askedAt: 0 },
    { items: ['equal', 'at 1000', 'at 1999'], askedAt: 1_000 },
    { items: ['equal', 'at 2000'], askedAt: 2_000 },
  ]);
});

test('an item is not joined with a statement that was sent before it was asked for', async () => {
  const opened = gate();
  const sent: (readonly string[])[] = [];
  const ask = createLoader<string, number>({
    costMax: 10,
    costOf: () => 1,
    async loadMany(items) {
      const at = sent.push(items);
      await opened.opened;
      return items.map(() => at);
    },
    loadOne: () => Promise.reject(new Error('Nothing is loaded individually.')),
  });
  const [one, equal] = [ask('a'), ask('a')];
  await until('a statement', () => sent.length === 1);
  const later = ask('a');
  await until('another statement', () => sent.length === 2);
  opened.open();
  assert.deepEqual(await Promise.all([one, equal, later]), [1, 1, 2]);
});

test('a statement inserts 100 short records, or a mebibyte of texts', () => {
  const { costMax, costOf } = toInserts(() => Promise.resolve([]));
  assert.equal(Math.floor(costMax / costOf({ row: { title: 'a' } })), 100);
  assert.equal(costMax, 1_048_576);
  assert.equal(costOf({ row: { title: 'x'.repeat(20_000) } }), 20_000);
});

test('posts under keys have a statement for each number of them up to 16, and one for more', async () => {
  const texts = new Set<string>();
  const deps = {
    pool: {
      async write({ text, values }: Statement) {
        texts.add(text);
        return values.flat().map((id) => ({ id }));
      },
    },
    versions: { track: async (rows: unknown) => rows },
    requests: { run: async (_: Once, attempt: () => unknown) => attempt() },
  } as unknown as InsertDeps;
  const insert = createInsert(deps, 'posts');
  const sizes: number[] = [];
  for (const count of [1, 2, 3, 15, 16, 17, 18, 100]) {
    const once = (at: number): Once => ({ key: `${count} ${at}`, fingerprint: '' });
    await Promise.all(times(count).map(async (at) => insert({ id: `${at}` }, once(at))));
    sizes.push(texts.size);
  }
  assert.deepEqual(sizes, [1, 2, 3, 4, 5, 6, 6, 6]);
});

test('inserts of which it is not known whether they were stored are not done again', async () => {
  const rows = [{ row: { id: 'a' } }, { row: { id: 'b' } }] as unknown as readonly Insertion[];
  const failing = (error: Error) => {
    const insert = async (): Promise<never> => {
      throw error;
    };
    return toInserts(insert).loadMany(rows, 0);
  };
  await assert.rejects(failing(lost()), { code: 'unavailable' });
  assert.deepEqual(await failing(new Error('refused')), [individually, individually]);
});
