/** How many bytes may wait for one subscriber: its share of the memory for what waits (R30). */

import type { Config } from '../../config.ts';

/** The smallest share, however many subscribers there are. */
export const queueBytesMin = 65_536;

/** The largest share, also of one that is alone: a 128th. */
const sharesMin = 128;

/** `subscribers`: the sockets, or the event streams, that share the memory now. */
export function createQueueShare(
  { waitingBytesMax }: Pick<Config, 'waitingBytesMax'>,
  subscribers: { readonly size: number },
): () => number {
  return () => Math.max(queueBytesMin, waitingBytesMax / Math.max(sharesMin, subscribers.size));
}
