/**
 * Names of members that have escapes. In Node 24 and 26, `JSON.parse` can read such a name as
 * another one, with a backslash, that it read before (nodejs/node#63785): one client could change
 * what is stored for another. So it gets no name with an escape from here.
 */

/** Finds the last escape of a name, and seldom one of a value. It takes linear time. */
const escapeInName = /\\.[^"\\]*"[\t\n\r ]*:/;

/** Parses JSON. Throws `SyntaxError`, or `URIError` for a lone surrogate in a name. */
export function parseWithNames(json: string): unknown {
  if (!escapeInName.test(json)) return JSON.parse(json);
  const value: unknown = JSON.parse(replaceNames(json, toCode));
  decodeNames(value);
  return value;
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

/** Changes the value itself, and keeps the order of its members. */
function decodeNames(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const member of Object.values(value)) decodeNames(member);
  if (!Object.keys(value).some((name) => name.startsWith('~'))) return;
  // Adding a member with an index for a name can take the memory of 1,500: they are left alone.
  const members = Object.entries(value).filter(([name]) => !/^(?:0|[1-9]\d{0,9})$/.test(name));
  // All at once: a name may be the code of another.
  for (const [name] of members) Reflect.deleteProperty(value, name);
  const plain = { configurable: true, enumerable: true, writable: true };
  for (const [name, member] of members) {
    const decoded = name.startsWith('~') ? decodeURIComponent(name.slice(1)) : name;
    // Also `__proto__`, which an assignment would not add.
    Object.defineProperty(value, decoded, { ...plain, value: member as unknown });
  }
}
