/** Writes over REST that are done once under a key (R40); nothing happens without the header. */

import { markReplayed, readIdempotencyKey, toFingerprint, toOnce } from '../http/idempotency.ts';
import { emptyResponse, type HttpRequest, type HttpResponse } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
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
  return toOnce(account, key, toFingerprint(request, content));
}

/** As `onceOf`, for a handler that does not know the account. Refuses a token that is not valid. */
export async function findOnce(
  request: HttpRequest,
  viewerOf: HandlerDeps['viewerOf'],
  content?: readonly unknown[],
): Promise<Once | undefined> {
  if (readIdempotencyKey(request) === undefined) return undefined;
  return onceOf(request, await viewerOf(request), content);
}

export interface OnceDeps {
  readonly viewerOf: HandlerDeps['viewerOf'];
  /** Where the change is done. */
  readonly store: { readonly requests: Requests };
  /** The response if it was done before; default: 204. */
  readonly done?: HttpResponse;
}

/**
 * Makes a change unless it was done before (`changeUnlessDone`): so a conditional request whose
 * response was lost can be sent again.
 */
export async function changeOnce(
  request: HttpRequest,
  { viewerOf, store, done = emptyResponse(204) }: OnceDeps,
  change: (once: Once | undefined) => MaybePromise<HttpResponse>,
): Promise<HttpResponse> {
  const once = await findOnce(request, viewerOf);
  if (once === undefined) return change(once);
  const made = await changeUnlessDone(once, store.requests, () => change(once));
  return isRepeated(made) ? markReplayed(done) : made;
}

/** The response to a write, by what the store has returned for it. */
export function toWritten(response: HttpResponse, result: unknown): HttpResponse {
  return isRepeated(result) ? markReplayed(response) : response;
}
