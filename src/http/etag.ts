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
 * True if `If-None-Match` contains the tag or `*`, by weak comparison (RFC 9110 §13.1.2). Tags of
 * this service contain no comma, so that the list can be split at commas.
 */
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const opaque = withoutWeakness(etag);
  return toTags(ifNoneMatch).some((tag) => tag === '*' || withoutWeakness(tag) === opaque);
}

/** True if a request has conditions: only then the tag has to be computed. */
export function isConditional(request: Headers): boolean {
  return request.header('if-match') !== undefined || request.header('if-none-match') !== undefined;
}

/**
 * For a method that changes the resource with this tag. Throws `precondition_failed` if `If-Match`
 * does not contain it, by strong comparison (RFC 9110 §13.1.1), or if `If-None-Match` does.
 */
export function checkConditions(request: Headers, etag: string): void {
  checkIfMatch(request, etag);
  if (matchesEtag(request.header('if-none-match'), etag)) throw preconditionFailed();
}

/** The response to a GET or HEAD: 304 if the client has it. Throws `precondition_failed`. */
export function toConditional(response: HttpResponse, request: Headers): HttpResponse {
  const { etag, headers, body } = response;
  if (etag === undefined || !isConditional(request)) return response;
  checkIfMatch(request, etag);
  if (!matchesEtag(request.header('if-none-match'), etag)) return response;
  if (body instanceof Readable) body.destroy();
  const isKept = (at: number): boolean => !ofContent.has(headers[at - (at % 2)] ?? '');
  return emptyResponse(
    304,
    headers.filter((_, at) => isKept(at)),
  );
}

/** Headers that describe the content, which a 304 does not have (RFC 9110 §15.4.5). */
const ofContent: ReadonlySet<string> = new Set(['Content-Type', 'Content-Encoding']);

function preconditionFailed(): AppError {
  return new AppError('precondition_failed', 'The resource is not in the state that is asked for.');
}

function checkIfMatch(request: Headers, etag: string): void {
  const ifMatch = request.header('if-match');
  if (ifMatch === undefined) return;
  if (!toTags(ifMatch).some((tag) => tag === '*' || tag === etag)) throw preconditionFailed();
}

function toTags(list: string): readonly string[] {
  return list.split(',').map((tag) => tag.trim());
}

function withoutWeakness(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}
