/**
 * Names of members that have escapes. In Node 24 and 26, `JSON.parse` can read such a name as
 * another one, with a backslash, that it read before (nodejs/node#63785): one client could change
 * what is stored for another. So it gets no name with an escape from here.
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
export function replaceNames(json: string, replace: (name: string) => string): string {
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
  // Adding an index to an object can take the memory of 1,500: what has some is changed itself.
  const renamed = named.length < all.length ? members : {};
  // All at once: a name may be the code of another.
  if (renamed === members) for (const [name] of named) Reflect.deleteProperty(members, name);
  for (const [name, value] of named) {
    const decoded = name.startsWith('~') ? decodeURIComponent(name.slice(1)) : name;
    if (decoded !== '__proto__') renamed[decoded] = value;
    else Object.defineProperty(renamed, decoded, { ...plain, value });
  }
  return renamed;
}

/** A member as parsing makes it. */
const plain = { configurable: true, enumerable: true, writable: true };

/** True for a name that JavaScript puts in front of others. */
function isIndex(name: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(name) && Number(name) < 2 ** 32 - 1;
}
