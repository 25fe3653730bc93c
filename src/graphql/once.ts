/**
 * Mutations that are done once under a key (R40).
 *
 * 1. A key is for one write: an operation under a key has one mutation.
 * 2. It is that of `extensions.idempotencyKey`, over HTTP and sockets alike, or else that of the
 *    header `Idempotency-Key`, which a batch with several mutations must not have.
 * 3. What was sent under the key is known by a digest of the documents, the operation names and the
 *    variables. A document counts as its hash, because a client that repeats a request may send the
 *    hash alone; a file as its names.
 */

import { hash } from 'node:crypto';
import { AppError } from '../errors.ts';
import { digestOf, parseIdempotencyKey } from '../http/idempotency.ts';
import type { GraphqlRequest } from './documents/documents.ts';
import { UploadedFile } from './schema/scalars.ts';

type Decoded = GraphqlRequest | AppError;

/** Adds the key of `extensions.idempotencyKey`. */
export function withOwnKey(request: GraphqlRequest, given: unknown): GraphqlRequest {
  if (given == null) return request;
  const key = typeof given === 'string' ? parseIdempotencyKey(given) : undefined;
  if (key === undefined) return { ...request, hasInvalidKey: true };
  return { ...request, once: { key, fingerprint: fingerprintOf([request]) } };
}

/** Adds the key of the header to those operations that have none of their own. */
export function withHeaderKey<T extends Decoded | readonly Decoded[]>(requests: T, key: string) {
  const isBatch = Array.isArray(requests);
  const all: readonly Decoded[] = isBatch ? requests : [requests];
  const fingerprint = fingerprintOf(all);
  const keyed = all.map((request) =>
    request instanceof AppError ? request : { once: { key, fingerprint }, ...request },
  );
  return (isBatch ? keyed : keyed[0]) as T; // as many, of the same kinds
}

/** The error for a key that several writes would have. */
export function refuseKey(what: string): AppError {
  const message = `An idempotency key is for one write: ${what}.`;
  return new AppError('invalid_idempotency_key', message);
}

function fingerprintOf(requests: readonly Decoded[]): string {
  const sent = requests.map((request) => {
    if (request instanceof AppError) return null;
    const { query = '', documentHash, operationName, variables } = request;
    return [documentHash ?? hash('sha256', query), operationName, variables];
  });
  const names: unknown[] = [];
  const text = JSON.stringify(sent, function (this: Record<string, unknown>, name, value: unknown) {
    const given = this[name];
    if (given instanceof UploadedFile) names.push(given.facts['name'], given.facts['fileName']);
    return value;
  });
  return digestOf(JSON.stringify([text, names]));
}
