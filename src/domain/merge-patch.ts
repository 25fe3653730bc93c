/**
 * JSON Merge Patch (RFC 7386), merged by `json-merge-patch`. The library ends silently at some
 * member names, throws at another, and assigns names like indices, for which V8 allocates an array
 * of 1,500 elements: these names are escaped for it.
 */

import library from 'json-merge-patch';
import type { Json } from '../store/model.ts';
import { isJsonObject } from './json-value.ts';

/** Merges `patch` into `target` (RFC 7386 §2), and returns it or its replacement. */
export function applyMergePatch(target: Json, patch: Json): Json {
  // The library returns JSON for JSON.
  if (isSafe(target) && isSafe(patch)) return library.apply(target, patch) as Json;
  const merged = library.apply(escapeNames(target), escapeNames(patch)) as Json;
  return JSON.parse(toUnescapedText(merged)) as Json;
}

/** The library stops at the first three names, and calls a target's member of the fourth. */
const unsafeNames: ReadonlySet<string> = new Set([
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
]);

const mark = '~';

function isSafeName(name: string): boolean {
  return !unsafeNames.has(name) && !/^[~0-9]/.test(name);
}

/** True if no name has to be escaped, which is usual. Arrays are replaced as a whole. */
function isSafe(value: Json): boolean {
  if (!isJsonObject(value)) return true;
  for (const name in value) {
    if (!isSafeName(name) || !isSafe(value[name] as Json)) return false;
  }
  return true;
}

function escapeNames(value: Json): Json {
  if (!isJsonObject(value)) return value;
  const escaped: Record<string, Json> = {};
  for (const name of Object.keys(value)) {
    escaped[isSafeName(name) ? name : mark + name] = escapeNames(value[name] as Json);
  }
  return escaped;
}

/** The JSON text of the merged value, with the original names. */
function toUnescapedText(value: Json): string {
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).map((name) => {
    const given = name.startsWith(mark) ? name.slice(mark.length) : name;
    return `${JSON.stringify(given)}:${toUnescapedText(value[name] as Json)}`;
  });
  return `{${members.join(',')}}`;
}
