/** Entity tags (RFC 9110 §8.8.3) and the requests that depend on them (RFC 9110 §13). */

import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { membersMax } from './list-header.ts';
import { emptyResponse, type HttpResponse, type HttpRequest, jsonTextResponse } from './message.ts';

type Headers = Pick<HttpRequest, 'header'>;

/** Returns a strong tag. `version` identifies the content if a shorter identifier is known. */
export function createEtag(content: string | Buffer, version?: string): string {
  if (version !== undefined) return `"${version}"`;
  return `"${hash('sha256', content, 'base64url').slice(0, 22)}"`;
}

/** A JSON response with its tag. A cache asks each time whether it is still so (R6b). */
export function taggedResponse(body: string | Buffer, version?: string): HttpResponse {
  const etag = createEtag(body, version);
  const { status, headers } = jsonTextResponse(200, body);
  return { status, headers: [...headers, 'Cache-Control', 'no-cache', 'ETag', etag], body, etag };
}

/**
 * For a method that changes the resource. Throws `precondition_failed` if `If-Match` does not
 * contain its tag, or if `If-None-Match` does. Returns true if there are conditions: only then the
 * tag is computed. `modifiedAt`: of what has a date, which then counts too.
 */
export function checkConditions(
  request: Headers,
  toEtag: () => string,
  modifiedAt?: number,
): boolean {
  const isConditional = hasConditions(request);
  if (isConditional && matchesNone(request, toEtag())) throw preconditionFailed();
  if (modifiedAt === undefined) return isConditional;
  checkUnmodifiedSince(request, modifiedAt);
  return isConditional || request.header('if-unmodified-since') !== undefined;
}

export function hasConditions(request: Headers): boolean {
  return request.header('if-match') !== undefined || request.header('if-none-match') !== undefined;
}

/**
 * The response to a GET or HEAD: 304 if the client has it. Throws `precondition_failed`. What has
 * no tag matches none, and `*` (RFC 9110 §13.1). Of what is no 200 no condition is asked (§13.2.1).
 */
export function toConditional(
  response: HttpResponse,
  request: Headers & Pick<HttpRequest, 'method'>,
): HttpResponse {
  const { status, etag = '', headers, body } = response;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (status !== 200 || !isRead || !matchesNone(request, etag)) return response;
  if (body instanceof Readable) body.destroy();
  const isKept = (at: number): boolean => !ofContent.has(headers[at - (at % 2)] ?? '');
  return emptyResponse(
    304,
    headers.filter((_, at) => isKept(at)),
  );
}

/**
 * The response to a request that gets no content, where its tag is known before the content is
 * made: HEAD, without `Content-Length` (RFC 9110 §9.3.2), or 304. Throws `precondition_failed`.
 * Undefined if the content is needed, if only for its tag.
 */
export function withoutContent(
  request: Headers & Pick<HttpRequest, 'method'>,
  version: string | undefined,
): HttpResponse | undefined {
  if (version === undefined) return undefined;
  const response = taggedResponse('', version);
  const conditional = toConditional(response, request);
  if (conditional !== response) return conditional;
  return request.method === 'HEAD' ? { ...response, body: Readable.from([]) } : undefined;
}

/**
 * True for a GET or HEAD of what the client has by its date. Throws `precondition_failed` if it was
 * changed after `If-Unmodified-Since`. Tags count where both are sent (RFC 9110 §13.2.2).
 */
export function isUnmodifiedSince(request: Headers, modifiedAt: number): boolean {
  checkUnmodifiedSince(request, modifiedAt);
  const hasTags = request.header('if-none-match') !== undefined;
  return !hasTags && modifiedAt <= dateOf(request, 'if-modified-since');
}

function checkUnmodifiedSince(request: Headers, modifiedAt: number): void {
  if (request.header('if-match') !== undefined) return;
  if (modifiedAt > dateOf(request, 'if-unmodified-since')) throw preconditionFailed();
}

/**
 * The three forms of a date (RFC 9110 §5.6.7), all in GMT, though asctime does not say so, and
 * clients of Go and Python call it otherwise.
 */
const dateForm = /^([A-Z][a-z]{2,8},? .+ \d\d:\d\d:\d\d)(?: (?:GMT|UTC|[+-]0000)|( \d{4}))$/;

/** NaN, which no time is before or after, for what is no date. */
function dateOf(request: Headers, name: string): number {
  const [, date = '', year = ''] = dateForm.exec(request.header(name) ?? '') ?? [];
  return Date.parse(`${date}${year} GMT`);
}

/** Headers that describe the content, which a 304 does not have (RFC 9110 §15.4.5). */
const ofContent: ReadonlySet<string> = new Set(['Content-Type', 'Content-Encoding']);

/**
 * True if `If-None-Match` contains the tag, by weak comparison (RFC 9110 §13.1.2). Throws if
 * `If-Match` does not, by strong comparison (RFC 9110 §13.1.1).
 */
function matchesNone(request: Headers, etag: string): boolean {
  const ifMatch = request.header('if-match');
  const isMatch = ifMatch === undefined || includesTag(ifMatch, etag, true);
  if (!isMatch) throw preconditionFailed();
  const ifNoneMatch = request.header('if-none-match');
  return ifNoneMatch !== undefined && includesTag(ifNoneMatch, etag, false);
}

/**
 * A tag can hold commas and backslashes, but no quote (RFC 9110 §8.8.3). Some clients take the quotes
 * off, or put them around `*`, which no tag here is.
 */
const tagForm = /(W\/)?("[^"]*")|[^\s,"]+/g;
/** What proxies that compress put at the end of a tag: Caddy, Apache, Jetty. */
const codingSuffix = /^--?(?:br|deflate|gzip|zstd)"$/;
const anyTag = /^\s*(?:\*|"\*")\s*$/;

/** True if one of the first tags of a list is this one; `*` alone stands for any. */
function includesTag(list: string, etag: string, isStrong: boolean): boolean {
  if (anyTag.test(list)) return true;
  if (isStrong && etag.startsWith('W/')) return false;
  const opaque = etag.replace('W/', '');
  // A tag can end with the sign that a suffix begins with.
  const begun = opaque.slice(0, -1);
  let count = 0;
  for (const [bare, weak, tag = `"${bare}"`] of list.matchAll(tagForm)) {
    const isSame =
      tag === opaque || (tag.startsWith(begun) && codingSuffix.test(tag.slice(begun.length)));
    if (isSame && !(isStrong && weak)) return true;
    if ((count += 1) === membersMax) break;
  }
  return false;
}

export function preconditionFailed(): AppError {
  return new AppError('precondition_failed', 'The resource is not in the state that is asked for.');
}
