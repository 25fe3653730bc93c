/** The socket, as the protocol code uses it; implemented in `peer.ts`. */

import type { JsonBody } from '../../http/response-cache.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import type { Closing } from './protocol.ts';

/** None of its methods throws. */
export interface SocketPort {
  /** Queues a text message. Nothing is sent after `close`. */
  send(text: string): void;
  /** Queues `prefix`, the result and `}` as one message. */
  sendResult(json: JsonBody, prefix: string): void;
  /**
   * The same for an event, which is encoded once for equal prefixes. Closes the socket instead if
   * it is backlogged.
   */
  deliver(event: SharedEvent, prefix: string): void;
  /** True if more bytes are queued than a subscriber may have (R30). */
  isBacklogged(): boolean;
  close(closing: Closing): void;
}
