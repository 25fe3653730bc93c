/**
 * Names of members that have escapes. In Node 24, and in 26 until after 26.5, `JSON.parse` can read
 * such a name as another one, with a backslash, that it read before (nodejs/node#63785): one client
 * could change what is stored for another. The file goes with Node 24: 26.12 has no such fault, and
 * `json.test.ts` tells what the running version has. Until then `JSON.parse` gets no name with an
 * escape from it:
 *
 * 1. A text without an escape in a name, which is almost every text, is parsed as it is.
 * 2. In any other text the names with an escape, and those that begin with `~`, are listed. Such a
 *    name is written without needless escapes. If it still has an escape, or begins with `~`, it
 *    becomes a code: `~` and its first number in the list.
 * 3. The text is parsed, and the codes in the value are replaced by the names of the list.
 *
 * Example: `{"\u0061": 1, "~": 2, "\n": {"b": 3, "\n": 4}}`
 *     list   `a`, `~`, a line feed, a line feed
 *     text   `{"a": 1, "~1": 2, "~2": {"b": 3, "~2": 4}}`
 *     value  the names `a`, `~` and a line feed, in their order
 */

/** Finds the last escape of a name, and seldom one of a value. It takes linear time. */
const escapeInName = /\\.[^"\\]*"[\t\n\r ]*:/;

/** `JSON.parse` for names that anybody chose. Throws `SyntaxError`. */
export function parseText(json: string): unknown {
  if (!json.includes('\\') || !escapeInName.test(json)) return JSON.parse(json);
  const { text, names } = encodeNames(json);
  return decodeNames(JSON.parse(text), names);
}

/** The code of `~`. */
const tilde = 0x7e;
const colon = /[\t\n\r ]*:/y;
/** What `JSON.stringify` escapes. */
const escaped = /["\\\p{Cc}\p{Cs}]/u;

/** The text with codes, and the list. */
function encodeNames(json: string): { readonly text: string; readonly names: readonly string[] } {
  const places: { readonly start: number; readonly end: number }[] = [];
  let escape = json.indexOf('\\');
  for (let start = json.indexOf('"'), end; start !== -1; start = json.indexOf('"', end)) {
    end = endOfString(json, start) + 1;
    if (escape !== -1 && escape < start) escape = json.indexOf('\\', start);
    const hasEscape = escape !== -1 && escape < end;
    if (!hasEscape && json.charCodeAt(start + 1) !== tilde) continue;
    colon.lastIndex = end;
    if (colon.test(json)) places.push({ start, end });
  }
  // One call: that for a single name takes as long as the rest of what is done for it.
  const texts = places.map(({ start, end }) => json.slice(start, end));
  const names = JSON.parse(`[${texts.join()}]`) as readonly string[];
  /** By name: a name that is written in two ways has one code, as the last value counts. */
  const codes = new Map<string, string>();
  let text = '';
  let kept = 0;
  for (const [number, { start, end }] of places.entries()) {
    const name = names[number] as string; // one for each place
    let code = codes.get(name);
    if (code === undefined) {
      const isPlain = name.charCodeAt(0) !== tilde && !escaped.test(name);
      codes.set(name, (code = isPlain ? name : `~${number}`));
    }
    text += json.slice(kept, start + 1) + code;
    kept = end - 1;
  }
  return { text: text + json.slice(kept), names };
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

type Members = Record<string, unknown>;

/** Returns the value with its codes replaced, in their order. Changes the value itself. */
function decodeNames(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const members = value as Members; // or an array
  let hasCodes = false;
  for (const name in members) {
    if (typeof members[name] === 'object') members[name] = decodeNames(members[name], names);
    hasCodes ||= name.charCodeAt(0) === tilde;
  }
  return hasCodes ? rename(members, names) : members;
}

function rename(members: Members, names: readonly string[]): Members {
  const given = Object.keys(members);
  // An index that is added to an object can take as much memory as 1,500 members. So an object with
  // indices, which are its first names, keeps them, and its other members are removed and added.
  const named = given.slice(given.findIndex((name) => !isIndex(name)));
  const values = named.map((name) => members[name]);
  const renamed = named.length < given.length ? members : {};
  // All are removed before one is added: a name may be the code of another name.
  if (renamed === members) for (const name of named) Reflect.deleteProperty(members, name);
  for (const [at, name] of named.entries()) {
    const isCode = name.charCodeAt(0) === tilde;
    setMember(renamed, isCode ? String(names[Number(name.slice(1))]) : name, values[at]);
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
