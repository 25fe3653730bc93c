/** The limit for bytes queued for one subscriber: its share of WAITING_BYTES_MAX (R30). */

import type { Config } from '../../config.ts';

/** The lower limit of a share, in bytes, whatever the number of subscribers. */
export const queueBytesMin = 65_536;

/** A share is at most a 128th, even if there is only one subscriber. */
const sharesMin = 128;

/** `subscribers`: the sockets, or the event streams, that share the memory at present. */
export function createQueueShare(
  { waitingBytesMax }: Pick<Config, 'waitingBytesMax'>,
  subscribers: { readonly size: number },
): () => number {
  return () => Math.max(queueBytesMin, waitingBytesMax / Math.max(sharesMin, subscribers.size));
}
