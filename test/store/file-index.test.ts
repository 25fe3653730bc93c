import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { toRanges } from '../../dist/store/file-index.js';
import { cases } from '../support/long.js';

describe('the ranges of changes that are being read', () => {
  it('are the changes themselves, where they are few', () => {
    assert.deepEqual(toRanges([]), []);
    assert.deepEqual(toRanges([12, 3, 100]), [
      [3, 3],
      [12, 12],
      [100, 100],
    ]);
  });

  it('hold every change, and are a hundred at most', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(), { maxLength: 1_000 }), (changes) => {
        const ranges = toRanges(changes);
        assert.ok(ranges.length <= 100);
        for (const change of changes) {
          assert.ok(ranges.some(([first, last]) => first <= change && change <= last));
        }
      }),
      { numRuns: cases(100) },
    );
  });
});
