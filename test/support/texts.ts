/** Characters for texts of properties: `fc.string({ unit: anyCharacter })`. */

import * as fc from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/** Any code point of Unicode. fast-check's own `binary` takes a second of processor time to set up. */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10_ffff - surrogates.count })
  .map((n) => String.fromCodePoint(n < surrogates.first ? n : n + surrogates.count));

/** Any code unit of UTF-16: such a text may hold half a character. */
export const anyCodeUnit = fc.integer({ min: 0, max: 0xffff }).map((n) => String.fromCharCode(n));
