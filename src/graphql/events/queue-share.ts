/** How many bytes may wait for one subscriber: its share of the memory for all queues (R30). */

import type { Config } from '../../config.ts';

/** The smallest share, however many subscribers there are. */
export const queueBytesMin = 65_536;

/** `subscribers`: the sockets, or the event streams, that share the memory now. */
export function createQueueShare(
  { waitingBytesMax, wsQueueBytesMax }: Pick<Config, 'waitingBytesMax' | 'wsQueueBytesMax'>,
  subscribers: { readonly size: number },
): () => number {
  return () =>
    Math.min(wsQueueBytesMax, Math.max(queueBytesMin, waitingBytesMax / subscribers.size));
}
