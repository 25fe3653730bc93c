/** Parses `Content-Type` (RFC 9110 §8.3) and matches `Accept` (RFC 9110 §12.5.1). */

import { listMembers } from './list-header.ts';

interface MediaType {
  /** `type/subtype` in lower case. */
  readonly essence: string;
  /** Parameter values by lower-case name; the first value of a repeated parameter. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** A token (RFC 9110 §5.6.2), as a part of patterns. */
export const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** What has one meaning without quotes, though it needs them: `boundary=----=_Part_1`. */
const bare = '[!#-+\\--:<-~]+';
const essencePattern = new RegExp(`^[ \\t]*(${token}/${token})[ \\t]*(?=;|$)`);
/** A name and a value, or nothing; clients of Java send `utf-8` for `charset=utf-8`. */
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${token})[ \\t]*=[ \\t]*(?:(${bare})|"((?:[^"\\\\\\x00-\\x08\\x0a-\\x1f\\x7f]|\\\\[^\\x00-\\x08\\x0a-\\x1f\\x7f])*)")?|utf-?8)?[ \\t]*`,
  'giy',
);

/** No media type has more; each takes as long as a small request (R47). */
const parametersMax = 16;

/** Parses a media type; undefined if it is malformed, or has too many parameters. */
export function parseMediaType(text: string): MediaType | undefined {
  const found = essencePattern.exec(text);
  if (found?.[1] === undefined) return undefined;
  const parameters = new Map<string, string>();
  let end = found[0].length;
  let count = 0;
  for (const [all, given, plain, quoted = ''] of text.slice(end).matchAll(parameterPattern)) {
    if ((count += 1) > parametersMax) break;
    end += all.length;
    const name = given?.toLowerCase();
    if (name === undefined || parameters.has(name)) continue;
    parameters.set(name, plain ?? quoted.replaceAll(/\\(.)/g, '$1'));
  }
  return end === text.length ? { essence: found[1].toLowerCase(), parameters } : undefined;
}

/** True if the charset is absent or UTF-8. Some clients send an empty one for none. */
export function hasUtf8Charset(type: MediaType): boolean {
  return ['', 'utf-8', 'utf8'].includes(type.parameters.get('charset')?.toLowerCase() ?? '');
}

/**
 * Returns the type of `offered` that an `Accept` header prefers, or undefined if it accepts none.
 * The first type wins without a header, and between equal weights.
 */
export function negotiate<const T extends string>(
  accept: string | undefined,
  offered: readonly T[],
): T | undefined {
  if (accept === undefined || accept === '*/*') return offered[0];
  // An empty list has no preference (RFC 9110 §5.6.1).
  if (/^[ \t,]*$/.test(accept)) return offered[0];
  const ranges = listMembers(accept).map(parseRange);
  let best: T | undefined;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) {
      best = type;
      bestQuality = quality;
    }
  }
  return best;
}

interface Range {
  readonly essence: string;
  readonly quality: number;
}

/**
 * A malformed range accepts nothing; of one with malformed parameters, such as a list with `;`, the
 * type counts. `*` is how clients, Java's among them, shorten it.
 */
function parseRange(text: string): Range {
  const range = text.replace(/^[ \t]*\*(?![^ \t;])/, '*/*');
  const type = parseMediaType(range) ?? parseMediaType(range.split(';', 1)[0] ?? '');
  if (type === undefined) return { essence: '', quality: 0 };
  const weight = type.parameters.get('q');
  if (!weight) return { essence: type.essence, quality: 1 };
  // `.2` is invalid (RFC 9110 §12.4.2), but Java's HttpURLConnection has always sent it.
  const valid = /^(?:0(?:\.[0-9]{0,3})?|\.[0-9]{1,3}|1(?:\.0{0,3})?)$/.test(weight);
  return { essence: type.essence, quality: valid ? Number(weight) : 0 };
}

/** The most specific range applies (RFC 9110 §12.5.1). */
function qualityOf(type: string, ranges: readonly Range[]): number {
  const wider = [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*'];
  for (const essence of wider) {
    const found = ranges.filter((range) => range.essence === essence);
    if (found.length > 0) return Math.max(...found.map((range) => range.quality));
  }
  return 0;
}
