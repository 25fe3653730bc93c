/**
 * JSON Merge Patch (RFC 7386). `json-merge-patch` does the merging, but it stops silently at
 * members of some names, throws at another, and makes costly objects of those like indices:
 * these names are spelled differently while it works. It also changes its target, so that it gets
 * a copy.
 */

import library from 'json-merge-patch';
import { isLikeIndex, jsonDepthMax } from '../json-measure.ts';
import type { Json } from '../store/model.ts';
import { isJsonObject, tooDeep } from './json-value.ts';

/** `target` with `patch` merged in (RFC 7386 §2). Any JSON value is a merge patch. */
export function applyMergePatch(target: Json, patch: Json): Json {
  const names: Names = { areGiven: true };
  const merged = library.apply(escapeNames(target, names), escapeNames(patch, names));
  // It makes JSON of JSON.
  return names.areGiven ? (merged as Json) : (JSON.parse(toUnescapedText(merged as Json)) as Json);
}

/** It leaves off at the first three, and calls the fourth as a method of its target. */
const awkwardNames: ReadonlySet<string> = new Set([
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
]);

const mark = '~';

/** Whether all names are still as the client gave them: mostly they are. */
interface Names {
  areGiven: boolean;
}

function escapeName(name: string, names: Names): string {
  if (!awkwardNames.has(name) && !name.startsWith(mark) && !isLikeIndex(name)) return name;
  names.areGiven = false;
  return mark + name;
}

/**
 * A copy of all objects that a merge can reach. Arrays are replaced as a whole: what they hold is
 * shared. Also the bound on how deep the library goes.
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

/** The JSON text of what was merged, with the names that the client gave. */
function toUnescapedText(value: Json): string {
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).map((name) => {
    const given = name.startsWith(mark) ? name.slice(mark.length) : name;
    return `${JSON.stringify(given)}:${toUnescapedText(value[name] as Json)}`;
  });
  return `{${members.join(',')}}`;
}
