/** The two patch formats (Spec §4.6) as one type. A patch is validated once, when it is read. */

import type { Json } from '../store/model.ts';
import { applyJsonPatch, itemsOf, parseJsonPatch } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';

export interface Patch {
  /** Changes the document, and returns it or its replacement, or throws. */
  readonly apply: (document: Json) => Json;
  /** The items of an array that the patch uses; undefined: it may use any. */
  readonly items: ReadonlySet<number> | undefined;
}

/**
 * A JSON Patch (RFC 6902). Throws `invalid_patch` at once if it is malformed; the patch itself
 * throws `patch_not_applicable` or `content_too_large`. The copies of one patch may have
 * `copyLengthMax` characters together.
 */
export function toJsonPatch(body: unknown, copyLengthMax: number): Patch {
  const operations = parseJsonPatch(body);
  return {
    apply: (document) => applyJsonPatch(document, operations, copyLengthMax),
    items: itemsOf(operations),
  };
}

/** A merge patch (RFC 7386). Every JSON value is a valid one. */
export function toMergePatch(body: unknown): Patch {
  const patch = body as Json; // validated by `http/json.ts`
  return { apply: (document) => applyMergePatch(document, patch), items: undefined };
}
