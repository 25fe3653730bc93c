import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { escapeText, unescapeText } from '../../dist/store/sql/text-escape.js';

const anyUnits = fc.string({
  unit: fc.oneof(
    fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    fc.constantFrom('\0', '␚', '\ud83d', '\ude00', '0', 'a'),
  ),
});

describe('a text for a database', () => {
  it('is the text itself where a database can keep that', () => {
    for (const text of ['', 'Hello', 'zażółć', '😀', '\u0001\t\r\n', '\uffff']) {
      assert.equal(escapeText(text), text);
    }
  });

  it('comes back as it was', () => {
    fc.assert(fc.property(anyUnits, (text) => unescapeText(escapeText(text)) === text));
  });

  it('holds no U+0000 and no lone surrogate', () => {
    fc.assert(
      fc.property(anyUnits, (text) => {
        const kept = escapeText(text);
        return kept.isWellFormed() && !kept.includes('\0');
      }),
    );
  });
});
