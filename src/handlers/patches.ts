/** Media types of patches, and merge patches of posts and todos (R16, R37). */

import { AppError } from '../errors.ts';
import { checkConditions, createEtag, isConditional } from '../http/etag.ts';
import { parseJson } from '../http/json.ts';
import { hasUtf8Charset, parseMediaType } from '../http/media-type.ts';
import { emptyResponse, type HttpRequest, type HttpResponse } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';

export const jsonPatchType = 'application/json-patch+json';
export const mergePatchType = 'application/merge-patch+json';

/** Reads a merge patch, and returns what `decode` makes of it. 415 for another media type. */
export async function readMergePatch<T>(
  request: HttpRequest,
  bytesMax: number,
  decode: (body: unknown) => T,
): Promise<T> {
  getPatchType(request.header('content-type') ?? '', [mergePatchType]);
  return decode(parseJson(await request.readBody(bytesMax)));
}

/** RFC 5789 §2.2: a patch in another format is refused with the list of supported formats. */
export function getPatchType(contentType: string, types: readonly string[]): string {
  if (types.includes(contentType)) return contentType;
  const type = parseMediaType(contentType);
  if (type !== undefined && types.includes(type.essence) && hasUtf8Charset(type)) {
    return type.essence;
  }
  const acceptPatch = types.join(', ');
  const message = `The patch must be ${types.join(' or ')} in UTF-8.`;
  throw new AppError('unsupported_media_type', message, { acceptPatch });
}

interface Change<T> {
  /** Returns the record, or throws. */
  readonly get: () => Promise<T>;
  readonly toJson: (record: T) => string;
  readonly apply: Apply<T>;
}

/** Returns false if the record was removed, or has not the members of `expected` any more. */
export type Apply<T> = (id: string, expected: T | undefined) => MaybePromise<boolean>;

/**
 * Changes or removes a record, or throws 404 or 412. If another request changes it after the tag
 * was compared, the tag is compared again.
 */
export async function changeRecord<T extends { readonly id: string }>(
  request: HttpRequest,
  { get, toJson, apply }: Change<T>,
): Promise<HttpResponse> {
  for (;;) {
    const record = await get();
    const hasConditions = isConditional(request);
    if (hasConditions) checkConditions(request, createEtag(toJson(record)));
    if (await apply(record.id, hasConditions ? record : undefined)) return emptyResponse(204);
  }
}
