/**
 * JSON Merge Patch (RFC 7386), merged by `json-merge-patch`. The library ends silently at some
 * member names, throws at another, and wastes memory for names like indices: these names are
 * escaped for it. It also changes its target, which is therefore copied.
 */

import library from 'json-merge-patch';
import { isLikeIndex, jsonDepthMax } from '../json-measure.ts';
import type { Json } from '../store/model.ts';
import { isJsonObject, tooDeep } from './json-value.ts';

/** `target` with `patch` merged in (RFC 7386 §2). Any JSON value is a merge patch. */
export function applyMergePatch(target: Json, patch: Json): Json {
  const names: Names = { areSafe: true };
  const merged = library.apply(escapeNames(target, names), escapeNames(patch, names));
  // The library returns JSON for JSON.
  return names.areSafe ? (merged as Json) : (JSON.parse(toUnescapedText(merged as Json)) as Json);
}

/** The library stops at the first three names, and calls a target's member of the fourth. */
const unsafeNames: ReadonlySet<string> = new Set([
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
]);

const mark = '~';

/** True while no name had to be escaped, which is usual. */
interface Names {
  areSafe: boolean;
}

function escapeName(name: string, names: Names): string {
  if (!unsafeNames.has(name) && !name.startsWith(mark) && !isLikeIndex(name)) return name;
  names.areSafe = false;
  return mark + name;
}

/**
 * Copies all objects that a merge can reach, and bounds the library's recursion. Arrays are
 * replaced as a whole, so that their items are shared.
 */
function escapeNames(value: Json, names: Names, levels = jsonDepthMax): Json {
  if (!isJsonObject(value)) return value;
  if (levels === 0) throw tooDeep();
  const copy: Record<string, Json> = {};
  for (const name of Object.keys(value)) {
    copy[escapeName(name, names)] = escapeNames(value[name] as Json, names, levels - 1);
  }
  return copy;
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
