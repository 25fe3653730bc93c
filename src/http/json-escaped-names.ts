/**
 * Names of members that have escapes. In Node 24 and 26, `JSON.parse` can read such a name as
 * another one, with a backslash, that it read before (nodejs/node#63785): one client could change
 * what is stored for another. Therefore this file gives `JSON.parse` no name with an escape:
 *
 * 1. A text without an escape in a name, which is almost every text, is parsed as it is.
 * 2. In any other text each name is written without needless escapes. A name that still has an
 *    escape, or that begins with `~`, becomes a code: `~` and its percent-encoding (`toCode`).
 * 3. The text is parsed, and the codes in the value are decoded (`decodeNames`).
 *
 * Example: `{"\u0061": 1, "~": 2, "\n": {"b": 3}}`
 *     text   `{"a": 1, "~~": 2, "~%0A": {"b": 3}}`
 *     value  the names `a`, `~` and a line feed, in their order
 */

/** Finds the last escape of a name, and seldom one of a value. It takes linear time. */
const escapeInName = /\\.[^"\\]*"[\t\n\r ]*:/;

/**
 * `JSON.parse` for names that anybody chose. Throws `SyntaxError`, or `URIError` for a lone
 * surrogate in a name.
 */
export function parseText(json: string): unknown {
  if (!json.includes('\\') || !escapeInName.test(json)) return JSON.parse(json);
  return decodeNames(JSON.parse(replaceNames(json, toCode)));
}

const colon = /[\t\n\r ]*:/y;

/** A JSON text with other names of members. `replace` gets and returns the JSON text of a name. */
function replaceNames(json: string, replace: (name: string) => string): string {
  let replaced = '';
  let kept = 0;
  for (let start = json.indexOf('"'), end; start !== -1; start = json.indexOf('"', end)) {
    end = endOfString(json, start) + 1;
    colon.lastIndex = end;
    if (!colon.test(json)) continue;
    replaced += json.slice(kept, start) + replace(json.slice(start, end));
    kept = end;
  }
  return replaced + json.slice(kept);
}

/** Returns the index of the closing quote, which follows an even number of backslashes. */
export function endOfString(json: string, start: number): number {
  for (let quote = start; ;) {
    quote = json.indexOf('"', quote + 1);
    if (quote === -1) return json.length; // It is not JSON, as the parser will say.
    let backslashes = 0;
    while (json.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
  }
}

/** A name that needs an escape becomes `~` and its percent-encoding; others are kept. */
function toCode(json: string): string {
  const name = JSON.parse(json) as string;
  const text = JSON.stringify(name); // without needless escapes
  return text.includes('\\') || name.startsWith('~') ? `"~${encodeURIComponent(name)}"` : text;
}

type Members = Record<string, unknown>;

/** Returns the value with its names decoded, in their order. Changes the value itself. */
function decodeNames(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const members = value as Members; // or an array
  let hasCodes = false;
  for (const name in members) {
    if (typeof members[name] === 'object') members[name] = decodeNames(members[name]);
    hasCodes ||= name.startsWith('~');
  }
  return hasCodes ? rename(members) : members;
}

function rename(members: Members): Members {
  const all = Object.entries(members);
  const named = all.filter(([name]) => !isIndex(name));
  // An index that is added to an object can take as much memory as 1,500 members. So an object with
  // indices keeps them, and its other members are removed and added again.
  const renamed = named.length < all.length ? members : {};
  // All are removed before one is added: a decoded name may be the code of another name.
  if (renamed === members) for (const [name] of named) Reflect.deleteProperty(members, name);
  for (const [name, value] of named) {
    setMember(renamed, name.startsWith('~') ? decodeURIComponent(name.slice(1)) : name, value);
  }
  return renamed;
}

function setMember(members: Members, name: string, value: unknown): void {
  if (name !== '__proto__') members[name] = value;
  else Object.defineProperty(members, name, { ...plain, value });
}

/**
 * Adds or replaces members. Returns the object itself, or another one if a new name is an index:
 * an index takes as much memory as 1,500 members (see `rename`), except one that parsing adds.
 */
export function setMembers<T extends Members>(
  members: T,
  added: readonly (readonly [name: string, value: unknown])[],
): T {
  const isNew = (name: string): boolean => isIndex(name) && !Object.hasOwn(members, name);
  if (!added.some(([name]) => isNew(name))) {
    for (const [name, value] of added) setMember(members, name, value);
    return members;
  }
  const names = [...Object.keys(members), ...added.map(([name]) => name)];
  const indices = new Set(names.filter(isIndex));
  const parsed = JSON.parse(`{${Array.from(indices, (name) => `"${name}":0`).join()}}`) as T;
  return setMembers(setMembers(parsed, Object.entries(members)), added);
}

/** A member as parsing makes it. */
const plain = { configurable: true, enumerable: true, writable: true };

/** True for an array index: objects have members with such names in front of others. */
function isIndex(name: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(name) && Number(name) < 2 ** 32 - 1;
}
