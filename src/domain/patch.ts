/**
 * The two patch formats (Spec §4.6) behind one type. A patch is validated once, when it is read,
 * and then makes a new document from an old one. Neither is changed.
 */

import type { Json } from '../store/model.ts';
import { applyJsonPatch, parseJsonPatch } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';

/** Returns the patched document, or throws; there is no partial result (R16). */
export type Patch = (document: Json) => Json;

/**
 * A JSON Patch (RFC 6902). Throws `invalid_patch` at once if it is malformed; the patch itself
 * throws `patch_not_applicable` or `content_too_large`. The copies of one patch may take
 * `copiesBytesMax` together.
 */
export function toJsonPatch(body: unknown, copiesBytesMax: number): Patch {
  const operations = parseJsonPatch(body);
  return (document) => applyJsonPatch(document, operations, copiesBytesMax);
}

/** A merge patch (RFC 7386). Every JSON value is a valid one. */
export function toMergePatch(body: unknown): Patch {
  return (document) => applyMergePatch(document, body as Json); // validated by `http/json.ts`
}
