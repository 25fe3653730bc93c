/**
 * JSON Merge Patch (RFC 7386). `json-merge-patch` does the merging, but it stops without a word at
 * members of some names, and trips over one of another: these names are spelled differently while
 * it works. It also changes its target, so that it gets a copy.
 */

import library from 'json-merge-patch';
import { jsonDepthMax } from '../http/json.ts';
import type { Json } from '../store/model.ts';
import { isJsonObject, setMember, tooDeep } from './json-value.ts';

/** `target` with `patch` merged in (RFC 7386 §2). Any JSON value is a merge patch. */
export function applyMergePatch(target: Json, patch: Json): Json {
  const merged = library.apply(mapNames(target, escapeName), mapNames(patch, escapeName));
  return mapNames(merged as Json, unescapeName); // it makes JSON of JSON
}

/** It leaves off at the first three, and calls the fourth as a method of its target. */
const awkwardNames: ReadonlySet<string> = new Set([
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
]);

const mark = '~';

function escapeName(name: string): string {
  return awkwardNames.has(name) || name.startsWith(mark) ? mark + name : name;
}

function unescapeName(name: string): string {
  return name.startsWith(mark) ? name.slice(mark.length) : name;
}

/**
 * A copy of all objects that a merge can reach. Arrays are replaced as a whole: what they hold is
 * shared. Also the bound on how deep the library goes.
 */
function mapNames(value: Json, map: (name: string) => string, levels = jsonDepthMax): Json {
  if (!isJsonObject(value)) return value;
  if (levels === 0) throw tooDeep();
  const copy: Record<string, Json> = {};
  for (const name of Object.keys(value)) {
    setMember(copy, map(name), mapNames(value[name] as Json, map, levels - 1));
  }
  return copy;
}
