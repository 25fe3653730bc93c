/**
 * Escapes texts in a database. It stores Unicode text, but a JavaScript string can also contain
 * U+0000, which PostgreSQL refuses and where SQLite ends the text, and lone surrogates, which UTF-8
 * cannot encode (R8: any text comes back as it was sent). Each of these is stored as `␚` (U+241A)
 * and four hex digits, and so is `␚`. All other texts, which is nearly every text, are stored
 * unchanged and can be read with the database's own tools.
 */

/** With the flag `u`, surrogates in a class match only lone surrogates. */
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
