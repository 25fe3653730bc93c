/** Writes over REST that are done once under a key (R40); nothing happens without the header. */

import {
  markReplayed,
  readIdempotencyKey,
  toFingerprint,
  toStoredKey,
} from '../http/idempotency.ts';
import { emptyResponse, type HttpRequest, type HttpResponse } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';
import { changeUnlessDone, isRepeated } from '../store/once.ts';
import type { Once, Requests } from '../store/store.ts';
import type { HandlerDeps } from './deps.ts';

/** The key and the request, for the store. Call it when the body was read. */
export function onceOf(
  request: HttpRequest,
  account: Account | undefined,
  content?: readonly unknown[],
): Once | undefined {
  const key = readIdempotencyKey(request);
  if (key === undefined) return undefined;
  return { key: toStoredKey(account?.id, key), fingerprint: toFingerprint(request, content) };
}

/** As `onceOf`, for a handler that does not know the account. Refuses a token that is not valid. */
export function findOnce(
  request: HttpRequest,
  viewerOf: HandlerDeps['viewerOf'],
  content?: readonly unknown[],
): MaybePromise<Once | undefined> {
  if (readIdempotencyKey(request) === undefined) return undefined;
  return andThen(viewerOf(request), (account) => onceOf(request, account, content));
}

export interface OnceDeps {
  readonly viewerOf: HandlerDeps['viewerOf'];
  /** Where the change is done. */
  readonly store: { readonly requests: Requests };
}

/**
 * Responds with 204 if the change was done before (`changeUnlessDone`): so a conditional request
 * whose response was lost can be sent again.
 */
export function changeOnce(
  request: HttpRequest,
  { viewerOf, store }: OnceDeps,
  change: (once: Once | undefined) => MaybePromise<HttpResponse>,
): MaybePromise<HttpResponse> {
  return andThen(findOnce(request, viewerOf), (once) => {
    if (once === undefined) return change(once);
    const changed = changeUnlessDone(once, store.requests, () => change(once));
    return andThen(changed, (made) => (isRepeated(made) ? markReplayed(emptyResponse(204)) : made));
  });
}

/** The response to a write, by what the store has returned for it. */
export function toWritten(response: HttpResponse, result: unknown): HttpResponse {
  return isRepeated(result) ? markReplayed(response) : response;
}
