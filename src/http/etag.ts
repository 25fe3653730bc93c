/** Entity tags (RFC 9110 §8.8.3) and the requests that depend on them (RFC 9110 §13). */

import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { emptyResponse, type HttpResponse, type HttpRequest, jsonTextResponse } from './message.ts';

type Headers = Pick<HttpRequest, 'header'>;

/** Returns a strong tag. `version` identifies the content if a shorter identifier is known. */
export function createEtag(content: string | Buffer, version?: string): string {
  if (version !== undefined) return `"${version}"`;
  return `"${hash('sha256', content, 'base64url').slice(0, 22)}"`;
}

/** A JSON response with its tag. */
export function taggedResponse(body: string | Buffer, version?: string): HttpResponse {
  const etag = createEtag(body, version);
  const { status, headers } = jsonTextResponse(200, body);
  return { status, headers: [...headers, 'ETag', etag], body, etag };
}

/**
 * For a method that changes the resource. Throws `precondition_failed` if `If-Match` does not
 * contain its tag, or if `If-None-Match` does. Returns true if there are conditions: only then the
 * tag is computed.
 */
export function checkConditions(request: Headers, toEtag: () => string): boolean {
  const isConditional =
    request.header('if-match') !== undefined || request.header('if-none-match') !== undefined;
  if (isConditional && matchesNone(request, toEtag())) throw preconditionFailed();
  return isConditional;
}

/** The response to a GET or HEAD: 304 if the client has it. Throws `precondition_failed`. */
export function toConditional(response: HttpResponse, request: Headers): HttpResponse {
  const { etag, headers, body } = response;
  if (etag === undefined || !matchesNone(request, etag)) return response;
  if (body instanceof Readable) body.destroy();
  const isKept = (at: number): boolean => !ofContent.has(headers[at - (at % 2)] ?? '');
  return emptyResponse(
    304,
    headers.filter((_, at) => isKept(at)),
  );
}

/** Headers that describe the content, which a 304 does not have (RFC 9110 §15.4.5). */
const ofContent: ReadonlySet<string> = new Set(['Content-Type', 'Content-Encoding']);

/**
 * True if `If-None-Match` contains the tag, by weak comparison (RFC 9110 §13.1.2). Throws if
 * `If-Match` does not, by strong comparison (RFC 9110 §13.1.1).
 */
function matchesNone(request: Headers, etag: string): boolean {
  const ifMatch = request.header('if-match');
  const isMatch = ifMatch === undefined || includesTag(ifMatch, etag, (tag) => tag);
  if (!isMatch) throw preconditionFailed();
  const ifNoneMatch = request.header('if-none-match');
  return ifNoneMatch !== undefined && includesTag(ifNoneMatch, etag, withoutWeakness);
}

/** `*` alone stands for any tag. Tags of this service contain no comma. */
function includesTag(list: string, etag: string, toCompared: (tag: string) => string): boolean {
  const tags = list.split(',').map((tag) => tag.trim());
  return list.trim() === '*' || tags.some((tag) => toCompared(tag) === toCompared(etag));
}

function withoutWeakness(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}

function preconditionFailed(): AppError {
  return new AppError('precondition_failed', 'The resource is not in the state that is asked for.');
}
