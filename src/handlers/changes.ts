/** Changes of records: patches by their media type, and conditional requests (R37). */

import { AppError } from '../errors.ts';
import { checkConditions, createEtag } from '../http/etag.ts';
import { parseJson } from '../http/json.ts';
import { hasUtf8Charset, parseMediaType } from '../http/media-type.ts';
import { emptyResponse, type HttpRequest, type HttpResponse } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Changed, ChangeOptions } from '../store/store.ts';
import { changeOnce, type OnceDeps, toWritten } from './once.ts';

export const jsonPatchType = 'application/json-patch+json';
export const mergePatchType = 'application/merge-patch+json';

/** Reads a merge patch, and returns what `decode` makes of it. 415 for another media type. */
export async function readMergePatch<T>(
  request: HttpRequest,
  bytesMax: number,
  decode: (body: unknown) => T,
): Promise<T> {
  getPatchType(request, [mergePatchType]);
  return request.decodeBody(bytesMax, (bytes) => decode(parseJson(bytes)));
}

/** RFC 5789 §2.2: a patch in another format is refused with the list of supported formats. */
export function getPatchType(request: HttpRequest, types: readonly string[]): string {
  const contentType = request.header('content-type') ?? '';
  if (types.includes(contentType)) return contentType;
  const type = parseMediaType(contentType);
  if (type !== undefined && types.includes(type.essence) && hasUtf8Charset(type)) {
    return type.essence;
  }
  const message = `The patch must be ${types.join(' or ')} in UTF-8.`;
  const headers = ['Accept-Patch', types.join(', ')];
  throw new AppError('unsupported_media_type', message, { headers });
}

interface Current<T> extends OnceDeps {
  /** Returns what the request is for, or throws. */
  readonly get: (request: HttpRequest) => MaybePromise<T>;
  readonly tagOf: (current: T) => string;
  /** For what has `Last-Modified`. */
  readonly dateOf?: (current: T) => number;
}

/** Returns the function that gives a record the tag of its JSON, as a GET of it has. */
export const tagBy =
  <T>(toJson: (record: T) => string) =>
  (record: T): string =>
    createEtag(toJson(record));

/** Returns what is read. If there is no record, 404 comes before any fault of the body. */
export async function readFor<T>(get: () => MaybePromise<unknown>, read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    await get();
    throw error;
  }
}

/**
 * Changes or removes a record, or throws 404 or 412. `apply` returns false if the record was
 * removed, or has not the members of `expected` any more: then the tag is compared again.
 */
export function changeRecord<T>(
  request: HttpRequest,
  { get, tagOf, dateOf, ...deps }: Current<T>,
  apply: (current: T, options: ChangeOptions<T>) => MaybePromise<Changed>,
): Promise<HttpResponse> {
  const askedAt = performance.now();
  return changeOnce(request, deps, async (once) => {
    for (;;) {
      const current = await get(request);
      const hasConditions = checkConditions(request, () => tagOf(current), dateOf?.(current));
      const expected = hasConditions ? current : undefined;
      const changed = await apply(current, { expected, once, askedAt });
      if (changed !== false) return toWritten(emptyResponse(204), changed);
    }
  });
}
