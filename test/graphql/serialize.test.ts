/** Results → JSON: the text of `JSON.stringify` in bounded pieces, within a budget of bytes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Budget } from '../../dist/graphql/budget.js';
import { serialize, toPieces } from '../../dist/graphql/serialize.js';
import { createScheduler } from '../../dist/scheduler.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { cases } from '../support/long.js';

/** A piece of text: escapes, pairs of surrogates, and enough of them for several pieces. */
const texts = fc.oneof(
  fc.string(),
  fc.integer({ min: 65_530, max: 65_545 }).map((length) => '\u{1F600}'.repeat(length)),
  fc.integer({ min: 1, max: 200_000 }).map((length) => '\u0001'.repeat(length)),
);
const values = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    texts,
    fc.constantFrom(null, true, 0, -1.5),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(fc.string(), tie('any'), { maxKeys: 4 }),
    fc.integer({ min: 0, max: 30_000 }).map((length) => Array.from({ length }, () => ({ a: 1 }))),
  ),
})).any;

function budgetOf(bytesMax: number, pool: MemoryPool = new MemoryPool(1e9)): Budget {
  return new Budget({ objectsMax: 1_000_000, bytesMax, pool });
}

test('the pieces together are the text of JSON.stringify, and none is long', () => {
  fc.assert(
    fc.property(values, (value) => {
      const pieces = [...toPieces(value)];
      assert.equal(pieces.join(''), JSON.stringify(value));
      for (const piece of pieces) assert.ok(piece.length <= 6 * 65_540 + 100, `${piece.length}`);
    }),
    { numRuns: cases(800) },
  );
});

test('a member without a value is left out', () => {
  const value = { a: undefined, long: 'x'.repeat(100_000), b: undefined, c: 1 };
  assert.equal([...toPieces(value)].join(''), JSON.stringify(value));
});

test('a large result gives others their turn, a small one is there at once', async () => {
  const small = budgetOf(1_000_000);
  assert.ok(!(serialize({ data: { a: 1 } }, small, createScheduler()) instanceof Promise));
  const budget = budgetOf(10_000_000);
  assert.ok(budget.covers(1, 5_000_000));
  const data = { list: Array.from({ length: 500 }, (_, at) => `${at} `.padEnd(10_000, 'x')) };
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const { json } = await serialize({ data }, budget, createScheduler());
  clearImmediate(next);
  assert.equal(json.toString(), JSON.stringify({ data }));
  assert.ok(turns > 0);
});

test('JSON beyond the bytes of the budget is refused, escapes counted', async () => {
  const pool = new MemoryPool(1e9);
  for (const [content, fits] of [
    ['x'.repeat(180_000), true],
    ['\u0001'.repeat(180_000), false],
  ] as const) {
    const budget = budgetOf(200_000, pool);
    assert.ok(budget.covers(1, content.length));
    const { result, json } = await serialize({ data: { content } }, budget, createScheduler());
    const code = result.errors?.[0]?.extensions.code;
    assert.equal(code, fits ? undefined : 'PAYLOAD_TOO_LARGE');
    assert.equal(json.toString(), JSON.stringify(result));
    assert.equal(pool.bytes > 0, fits);
    budget.release();
    assert.equal(pool.bytes, 0);
  }
});

test('a pool that has less left refuses for now, and gets everything back', async () => {
  const pool = new MemoryPool(480_000);
  const other = pool.open();
  assert.ok(other.grow(100_000));
  const content = 'x'.repeat(150_000);
  const make = async (): Promise<number> => {
    const budget = budgetOf(1_000_000, pool);
    try {
      assert.ok(budget.covers(1, content.length));
      return (await serialize({ data: { content } }, budget, createScheduler())).json.length;
    } finally {
      budget.release();
    }
  };
  await assert.rejects(make(), { code: 'overloaded', facts: { retryAfterSeconds: 1 } });
  assert.equal(pool.bytes, 100_000);
  other.release();
  const half = 'y'.repeat(100_000);
  const budget = budgetOf(1_000_000, pool);
  assert.ok(budget.covers(1, half.length));
  assert.equal(
    (await serialize({ data: { half } }, budget, createScheduler())).json.length,
    100_020,
  );
  budget.release();
  assert.equal(pool.bytes, 0);
});
