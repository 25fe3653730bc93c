/** Definition and parsing of one setting: its type, default, unit, limits and meaning. */

import { isIP } from 'node:net';

/** Bytes of a mebibyte. */
export const MiB = 1024 * 1024;

export interface Setting<T> {
  /** The environment variable. */
  readonly name: string;
  /** The default, as docs/settings.md shows it. */
  readonly fallback: string;
  readonly unit: string;
  readonly meaning: string;
  /**
   * Returns the value, or an Error that describes the fault. `memoryBytes` is the memory that the
   * process may use; some defaults are a share of it.
   */
  readonly parse: (given: string, memoryBytes?: number) => T | Error;
}

interface Described {
  readonly meaning: string;
}

interface Bounded extends Described {
  readonly unit?: string;
  readonly min?: number;
  readonly max?: number;
  /**
   * The default is the memory of the process divided by this, from `min` to `fallback`: for a
   * number of items, with the bytes of one as a factor.
   */
  readonly share?: number;
}

/** A whole number from `min` (default 0) to `max` (default 2^53 - 1). */
export function integer(name: string, fallback: number, options: Bounded): Setting<number> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER, share, unit = '', meaning } = options;
  const parse = (given: string, memoryBytes = Infinity): number | Error => {
    if (given === '' && share !== undefined) {
      return Math.max(min, Math.min(fallback, Math.floor(memoryBytes / share)));
    }
    const value = /^[0-9]{1,16}$/.test(given) ? Number(given) : Number.NaN;
    if (value >= min && value <= max) return value;
    return new Error(`must be a whole number from ${min} to ${max}`);
  };
  return { name, fallback: share === undefined ? String(fallback) : '', unit, meaning, parse };
}

/** A port number, or undefined for none. */
export function optionalPort(name: string, { meaning }: Described): Setting<number | undefined> {
  const setting = integer(name, 0, { max: 65_535, meaning });
  const parse = (given: string): number | undefined | Error =>
    given === '' ? undefined : setting.parse(given);
  return { ...setting, fallback: '', parse };
}

/** The maximum of a timer: 2^31 - 1 milliseconds, in whole seconds. */
const timerSecondsMax = 2_147_483;

/** A number of bytes. */
export function bytes(name: string, fallback: number, options: Bounded): Setting<number> {
  return integer(name, fallback, { ...options, unit: 'bytes' });
}

/** Whole seconds, at least 1. */
export function seconds(name: string, fallback: number, options: Bounded): Setting<number> {
  return integer(name, fallback, { max: timerSecondsMax, ...options, min: 1, unit: 'seconds' });
}

export function flag(name: string, fallback: boolean, { meaning }: Described): Setting<boolean> {
  const parse = (given: string): boolean | Error => {
    if (/^(?:true|1)$/.test(given)) return true;
    return /^(?:false|0)$/.test(given) ? false : new Error('must be true or false');
  };
  return { name, fallback: String(fallback), unit: '', meaning, parse };
}

/** One of a list of words. */
export function choice<const W extends string>(
  name: string,
  fallback: NoInfer<W>,
  { words, meaning }: Described & { readonly words: readonly W[] },
): Setting<W> {
  const parse = (given: string): W | Error =>
    words.find((word) => word === given) ?? new Error(`must be one of: ${words.join(', ')}`);
  return { name, fallback, unit: words.join(' or '), meaning, parse };
}

/** Returns the value that a text stands for (in a list: the text), or what is wrong with it. */
type Check = (given: string) => string | Error;

interface Checked extends Described {
  readonly check?: Check;
}

const isAny: Check = (given) => given;

/** Text; empty by default. */
export function text(name: string, unit: string, options: Checked): Setting<string> {
  const { meaning, check = isAny } = options;
  const parse = (given: string): string | Error => (given === '' ? '' : check(given));
  return { name, fallback: '', unit, meaning, parse };
}

/** Values separated by commas; surrounding white space is ignored. */
export function list(name: string, unit: string, options: Checked): Setting<readonly string[]> {
  const { meaning, check = isAny } = options;
  const parse = (given: string): readonly string[] | Error => {
    const items = given
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
    return items.map(check).find((checked) => checked instanceof Error) ?? items;
  };
  return { name, fallback: '', unit, meaning, parse };
}

/** A text of this form. */
export function matching(form: RegExp, fault: string): Check {
  return (given) => (form.test(given) ? given : new Error(fault));
}

/** Scheme and host, as browsers write an origin: ASCII, in lower case, without a default port. */
export function baseUrl(given: string): string | Error {
  return /^https?:\/\/[^/?#@\\]+$/i.test(given) && URL.canParse(given)
    ? new URL(given).origin
    : new Error('must be a base URL without a path, such as https://example.org');
}

/**
 * An origin as browsers write it, of whatever scheme; `null`; `file://` of a page in a WebView; or
 * `*` for every origin, or in the place of the first label of a host.
 */
export function origin(given: string): string | Error {
  if (given === '*' || given === 'null' || given === 'file://') return given;
  const named = given.replace(/^([a-z][a-z0-9+.-]*:\/\/)\*(?=\.)/, '$1a');
  if (!named.includes('*') && URL.canParse(named)) {
    const { protocol, host } = new URL(named);
    if (host !== '' && named === `${protocol}//${host}`) return given;
  }
  const other = 'https://*.example.org, null, or *; no other * has a meaning';
  return new Error(`must be an origin as browsers write it, such as https://example.org, ${other}`);
}

/** An address, or a network in CIDR notation. */
export function network(given: string): string | Error {
  const found = /^([0-9A-Fa-f.:]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(given);
  const version = isIP(found?.[1] ?? '');
  return version !== 0 && Number(found?.[2] ?? 0) <= (version === 4 ? 32 : 128)
    ? given
    : new Error('must be an address or a network, such as 192.0.2.1 or 2001:db8::/32');
}

/** As long as the output of SHA-256: HMAC is weaker with a shorter key (RFC 7518 §3.2). */
export function secret(given: string): string | Error {
  return Buffer.byteLength(given) < 32 ? new Error('must be at least 32 bytes') : given;
}
