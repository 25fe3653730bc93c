/** A subscriber: one client's subscription, over a WebSocket or an event stream. */

import type { Config } from '../../config.ts';
import type { ConnectionMemory } from '../../memory-pool.ts';
import type { GraphqlError } from '../errors.ts';
import type { SharedEvent } from './shared-event.ts';

/** Why a subscription ends, other than by the client or the end of the process. */
export type Ending =
  /** The source has no more events. */
  | { readonly kind: 'complete' }
  /** The subscription failed, or never started, because its variables are invalid. */
  | { readonly kind: 'refused'; readonly errors: readonly GraphqlError[] }
  /** The account of the subscriber was removed, or has another password. */
  | { readonly kind: 'revoked'; readonly errors: readonly GraphqlError[] }
  /** Events came faster than they could be executed. */
  | { readonly kind: 'overflow' };

/** What a group calls for each of its subscribers. The methods must not throw. */
export interface Subscriber {
  /** The memory that the connection of the subscriber holds. */
  readonly memory: ConnectionMemory;
  /**
   * Sends the event, if the subscription has not ended. Returns false if more bytes are queued for
   * the client than may be: its subscription ends instead, and leaves its group (R30).
   */
  next(event: SharedEvent): boolean;
  /** Undefined, or resolves when the client has taken what is queued for it, or has left. */
  taken(): Promise<void> | undefined;
  /** Called at most once, and never after the subscriber has left its group. */
  end(ending: Ending): void;
}

/** The limit for bytes queued for one client, if there are very many clients. */
export const queueBytesMin = 65_536;
/** A client's share is at most this part of REQUEST_MEMORY_BYTES_MAX, even if there is only one. */
const sharesMin = 128;

/**
 * Returns the current limit for bytes queued for one client (R30): its share of
 * REQUEST_MEMORY_BYTES_MAX. `clients`: the sockets, or the event streams, that share it.
 */
export function createQueueLimit(
  { requestMemoryBytesMax }: Pick<Config, 'requestMemoryBytesMax'>,
  clients: { readonly size: number },
): () => number {
  return () => Math.max(queueBytesMin, requestMemoryBytesMax / Math.max(sharesMin, clients.size));
}
