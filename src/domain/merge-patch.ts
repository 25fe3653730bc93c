/**
 * JSON Merge Patch (RFC 7386), merged by `json-merge-patch`. The library ends silently at some
 * member names, throws at another, and assigns names like indices, for which V8 allocates an array
 * of 1,500 elements. Therefore every name is marked while it merges.
 */

import library from 'json-merge-patch';
import type { Json } from '../store/model.ts';

/** Merges `patch` into `target` (RFC 7386 §2), and returns the result. */
export function applyMergePatch(target: Json, patch: Json): Json {
  const merged = library.apply(
    withNames(target, (name) => `"~${name.slice(1)}`),
    withNames(patch, (name) => `"~${name.slice(1)}`),
  );
  return withNames(merged, (name) => `"${name.slice(2)}`);
}

/** A string of a JSON text. In a text without white space, a colon follows a name and no other. */
const strings = /"[^"\\]*(?:\\.[^"\\]*)*"(:?)/g;

/** A copy with other names of members. `toName` gets and returns the JSON text of a name. */
function withNames(value: unknown, toName: (name: string) => string): Json {
  const text = JSON.stringify(value).replaceAll(strings, (found: string, colon: string) =>
    colon === '' ? found : toName(found),
  );
  return JSON.parse(text) as Json;
}
