/**
 * What handlers share: the parts of the app that they use, request bodies as typed values or one
 * 422 that names every fault (R5, R8), and changes of records under conditions.
 */

import type { Access } from '../auth/access.ts';
import type { Login } from '../auth/login.ts';
import type { Config } from '../config.ts';
import type { AddComment } from '../domain/comments.ts';
import { AppError, type FieldError, invalidBody } from '../errors.ts';
import { checkConditions, createEtag } from '../http/etag.ts';
import { isObject, parseJson } from '../http/json.ts';
import { hasUtf8Charset, parseMediaType } from '../http/media-type.ts';
import { emptyResponse, type HttpRequest, type HttpResponse } from '../http/message.ts';
import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { RecordResponses } from '../records/records.ts';
import type { ResponseCache } from '../records/response-cache.ts';
import type { Uploads } from '../store/files/uploads.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { Store } from '../store/store.ts';

export interface HandlerDeps extends Access {
  readonly config: Config;
  readonly store: Store;
  readonly records: RecordResponses;
  readonly responses: ResponseCache;
  readonly uploads: Pick<Uploads, 'begin' | 'open' | 'remove'>;
  readonly addComment: AddComment;
  readonly login: Login;
  readonly log: Log;
  readonly run: RunInTurn;
  /** Names files that come without a name (Spec §4.4 rule 2). */
  readonly createUuid: () => string;
}

/** Returns what is wrong with the value of a member, or undefined. */
type Rule = (value: unknown) => string | undefined;

/**
 * Returns a decoder of the members that have a rule; unknown ones are ignored (R8). It returns only
 * these: what is kept while a request waits must not hold the whole body.
 */
export function decoderOf<M extends object>(rules: Readonly<Record<keyof M & string, Rule>>) {
  const entries = Object.entries<Rule>(rules);
  return (body: unknown): M => {
    if (!isObject(body)) throw invalidBody([{ pointer: '', message: 'must be an object' }]);
    const members: Record<string, unknown> = {};
    const faults: FieldError[] = [];
    for (const [name, rule] of entries) {
      const value = body[name];
      const message = rule(value);
      if (message === undefined) members[name] = value;
      else faults.push({ pointer: `/${name}`, message });
    }
    if (faults.length > 0) throw invalidBody(faults);
    return members as M; // each was checked
  };
}

/** A text, which may be blank. */
export const anyText: Rule = (value) => {
  if (value === undefined) return 'is required';
  return typeof value === 'string' ? undefined : 'must be a string';
};

export const text: Rule = (value) =>
  typeof value === 'string' && value.trim() !== ''
    ? undefined
    : (anyText(value) ?? 'must not be blank');

export const flag: Rule = (value) =>
  typeof value === 'boolean' ? undefined : 'must be true or false';

export function oneOf(words: readonly string[]): Rule {
  const message = `must be one of ${words.join(', ')}`;
  return (value) => (words.includes(value as string) ? undefined : message);
}

export function optional(rule: Rule): Rule {
  return (value) => (value === undefined ? undefined : rule(value));
}

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

interface Changed<T> {
  /** Returns the record of the request, or throws. */
  readonly get: (request: HttpRequest) => Promise<T>;
  readonly toJson: (record: T) => string;
}

/**
 * Changes or removes a record, or throws 404 or 412. `apply` returns false if the record was
 * removed, or has not the members of `expected` any more: then the tag is compared again.
 */
export async function changeRecord<T extends { readonly id: string }>(
  request: HttpRequest,
  { get, toJson }: Changed<T>,
  apply: (id: string, expected: T | undefined) => MaybePromise<boolean>,
): Promise<HttpResponse> {
  for (;;) {
    const record = await get(request);
    const hasConditions = checkConditions(request, () => createEtag(toJson(record)));
    if (await apply(record.id, hasConditions ? record : undefined)) return emptyResponse(204);
  }
}
