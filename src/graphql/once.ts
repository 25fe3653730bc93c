/**
 * Mutations that are done once under a key (R40).
 *
 * 1. The key is that of the header `Idempotency-Key`, for all operations of a request, or of
 *    `extensions.idempotencyKey`, for one operation, over HTTP and sockets alike.
 * 2. Each mutation is a write of its own. The store knows it by the account, the key, the number of
 *    the operation in its batch, and its own number in the operation.
 * 3. What was sent under the key is known by a digest of the documents, the operation names and the
 *    variables. A document counts as its hash, because a client that repeats a request may send the
 *    hash alone; a file as its names.
 * 4. Before the first write under a key the store is asked for it: if any write of another request
 *    has the key, all mutations are refused, also those that the other request did not have.
 *
 * Example: the batch `[{createPost …}, {a: addComment … b: addComment …}]` has the writes (0, 0),
 * (1, 0) and (1, 1). Its first run stops after (1, 0). The repetition finds two of them done, does
 * the third, and has the ids of all three.
 */

import { hash } from 'node:crypto';
import { AppError } from '../errors.ts';
import { digestOf, parseIdempotencyKey, toStoredKey } from '../http/idempotency.ts';
import type { Account } from '../store/model.ts';
import { isRepeated } from '../store/once.ts';
import type { Once, Requests } from '../store/store.ts';
import type { GraphqlRequest, OperationKey } from './documents/documents.ts';
import { UploadedFile } from './schema/scalars.ts';

type Decoded = GraphqlRequest | AppError;

/** Adds the key of `extensions.idempotencyKey`. */
export function withOwnKey(request: GraphqlRequest, given: unknown): GraphqlRequest {
  if (given == null) return request;
  const key = typeof given === 'string' ? parseIdempotencyKey(given) : undefined;
  if (key === undefined) return { ...request, hasInvalidKey: true };
  return { ...request, once: { key, index: 0, fingerprint: fingerprintOf([request]) } };
}

/** Adds the key of the header to those operations that have none of their own. */
export function withHeaderKey<T extends Decoded | readonly Decoded[]>(requests: T, key: string) {
  const isBatch = Array.isArray(requests);
  const all: readonly Decoded[] = isBatch ? requests : [requests];
  const fingerprint = fingerprintOf(all);
  const keyed = all.map((request, index) =>
    request instanceof AppError ? request : { once: { key, index, fingerprint }, ...request },
  );
  return (isBatch ? keyed : keyed[0]) as T; // as many, of the same kinds
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

/** The writes of a request, operation by operation. */
export class KeyedWrites {
  /** How many of them were done before. */
  replays = 0;
  readonly #requests: Requests;
  #operation: OperationKey | undefined;
  #fields = 0;
  /** Whether the key was used for another request. */
  #check: Promise<unknown> | undefined;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  begin(operation: OperationKey | undefined): void {
    const { key, fingerprint } = this.#operation ?? {};
    if (operation?.key !== key || operation?.fingerprint !== fingerprint) this.#check = undefined;
    this.#operation = operation;
    this.#fields = 0;
  }

  /** Call it when a mutation begins, in the order of the operation; undefined without a key. */
  async next(account: () => Promise<Account | undefined>): Promise<Once | undefined> {
    if (this.#operation === undefined) return undefined;
    const { key, index, fingerprint } = this.#operation;
    const field = this.#fields++;
    const id = (await account())?.id;
    this.#check ??= (async () => this.#requests.find({ key: toStoredKey(id, key), fingerprint }))();
    await this.#check;
    return { key: toStoredKey(id, key, [index, field]), fingerprint };
  }

  /** Call it with what the store has returned for a write. */
  note(result: unknown): void {
    if (isRepeated(result)) this.replays += 1;
  }
}
