/**
 * Texts on their way into a database and out of it. A database keeps Unicode text; a JavaScript
 * string can also hold U+0000, which PostgreSQL refuses and SQLite ends the text at, and lone
 * surrogates, which UTF-8 has no bytes for (R8: any text comes back as it was sent). Each of these
 * is kept as `␚` (U+241A) and four hex digits, and so is `␚` itself. Every other text, which is
 * nearly every text, is kept as it is and can be read with the database's own tools.
 */

/** With the flag `u` a surrogate in a class is a lone one. */
const unkeepable = /[\0\u{241a}\u{d800}-\u{dfff}]/u;
const everyUnkeepable = /[\0\u{241a}\u{d800}-\u{dfff}]/gu;
const everyEscape = /\u{241a}([0-9a-f]{4})/gu;

export function escapeText(text: string): string {
  if (!unkeepable.test(text)) return text;
  return text.replaceAll(everyUnkeepable, (unit) => {
    return `\u241a${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

export function unescapeText(kept: string): string {
  if (!kept.includes('\u241a')) return kept;
  return kept.replaceAll(everyEscape, (_escape, hex: string) => {
    return String.fromCharCode(Number.parseInt(hex, 16));
  });
}
