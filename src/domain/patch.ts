/**
 * The two ways to patch a document (Spec §4.6), behind one shape: a patch is checked once, when it
 * is read, and then gives a new document for an old one. Neither is changed.
 */

import type { Json } from '../store/model.ts';
import { applyJsonPatch, parseJsonPatch } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';

/** Gives the patched document, or throws and leaves nothing half done (R16). */
export type Patch = (document: Json) => Json;

/**
 * A JSON Patch (RFC 6902). Throws `invalid_patch` at once for what is no patch document; the patch
 * itself throws `patch_not_applicable` or `content_too_large`. The copies of one patch may hold
 * `copiesBytesMax` altogether.
 */
export function toJsonPatch(body: unknown, copiesBytesMax: number): Patch {
  const operations = parseJsonPatch(body);
  return (document) => applyJsonPatch(document, operations, copiesBytesMax);
}

/** A merge patch (RFC 7386). Every JSON value is one. */
export function toMergePatch(body: unknown): Patch {
  return (document) => applyMergePatch(document, body as Json); // as `http/json.ts` lets it in
}
