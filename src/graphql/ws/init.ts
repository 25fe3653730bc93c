/** The payload of `connection_init` (Spec §4.1, R29). */

import { isObject } from '../../http/json.ts';

export type Init =
  | { readonly kind: 'refused'; readonly message: string }
  /** `authorization`: the payload's own, in the form of the HTTP header; it goes before that. */
  | { readonly kind: 'accepted'; readonly authorization: string | undefined };

/** Any JSON value; what is no object says nothing. */
export function decodeInit(payload: unknown): Init {
  if (!isObject(payload)) return { kind: 'accepted', authorization: undefined };
  if (Object.hasOwn(payload, 'rejectMessage')) {
    const message = payload['rejectMessage'];
    return {
      kind: 'refused',
      message: typeof message === 'string' ? message : JSON.stringify(message),
    };
  }
  // Choice: browsers cannot set headers on a WebSocket, so that the token may come here (R23).
  const authorization = payload['Authorization'] ?? payload['authorization'];
  return {
    kind: 'accepted',
    authorization: typeof authorization === 'string' ? authorization : undefined,
  };
}
