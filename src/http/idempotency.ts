/**
 * `Idempotency-Key`: a write that is sent again under its key is not done again (R40,
 * draft-ietf-httpapi-idempotency-key-header).
 *
 * 1. A key is 1 to 255 visible ASCII characters, bare or as a quoted string (RFC 9651 §3.3.3). Both
 *    spellings are one key. Node joins two header lines with a space, which no key has.
 * 2. The store keeps digests: one of the account and the key, so that accounts share no key, and
 *    one of the request, its fingerprint: another request under a used key is refused.
 * 3. Only the store says whether a write was done before: it stores key and write in one act.
 *
 * Example: a client sends `POST /posts` with `Idempotency-Key: "8e03"`; the response is lost. The
 * client sends the request again, with `Idempotency-Key: 8e03`. Both have one key and fingerprint:
 *
 *     key           SHA-256([id of ann, "8e03", 0, 0])
 *     fingerprint   SHA-256(["POST", "/posts", "application/json", SHA-256(body)])
 *
 * The store finds the id of the first post: 201, the same `Location`, `Idempotency-Replayed: true`.
 */

import { hash } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { HttpRequest, HttpResponse } from './message.ts';

const visible = /^[!-~]{1,255}$/;
const quoted = /^"((?:[^"\\]|\\["\\])*)"$/;

/** Returns the key; undefined without the header. Throws `invalid_idempotency_key`. */
export function readIdempotencyKey(request: Pick<HttpRequest, 'header'>): string | undefined {
  const header = request.header('idempotency-key');
  if (header === undefined) return undefined;
  const key = parseIdempotencyKey(header);
  if (key === undefined) throw invalidKey();
  return key;
}

/** Returns undefined for a text that is no key. */
export function parseIdempotencyKey(text: string): string | undefined {
  const key = text.startsWith('"') ? quoted.exec(text)?.[1]?.replaceAll(/\\(.)/g, '$1') : text;
  return key !== undefined && visible.test(key) ? key : undefined;
}

export function invalidKey(): AppError {
  const message = 'The idempotency key must be 1 to 255 visible ASCII characters, bare or quoted.';
  return new AppError('invalid_idempotency_key', message);
}

/** The first 132 bits of SHA-256, in base64url. */
export function digestOf(data: string): string {
  return hash('sha256', data, 'base64url').slice(0, 22);
}

/** How the store knows a write: by the account of the token, the key and the request. */
export function toOnce(
  account: { readonly id: string } | undefined,
  key: string,
  fingerprint: string,
): { readonly key: string; readonly fingerprint: string; readonly isAnonymous: boolean } {
  // The zeros are in the keys that older builds have stored.
  const stored = digestOf(JSON.stringify([account?.id ?? '', key, 0, 0]));
  return { key: stored, fingerprint, isAnonymous: account === undefined };
}

/** How the store knows a request; `content`: what identifies its body, if it is streamed. */
export function toFingerprint(request: HttpRequest, content?: readonly unknown[]): string {
  const { method, path, bodyDigest } = request;
  const body = content ?? [request.header('content-type'), bodyDigest];
  return digestOf(JSON.stringify([method, path, ...body]));
}

/** Says in the response that the write was done before. */
export function markReplayed<R extends HttpResponse>(response: R): R {
  return { ...response, headers: [...response.headers, 'Idempotency-Replayed', 'true'] };
}
