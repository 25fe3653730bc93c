/** A socket as the protocol side sees it; `upgrade.ts` makes one of a WebSocket. */

import type { Answer } from '../../http/answer-cache.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import type { Closing } from './protocol.ts';

/** What a connection needs of its socket. None of it throws. */
export interface SocketPort {
  /** Queues a text message; nothing after `close`. */
  send(text: string): void;
  /** Queues `prefix`, the result and `}` as one message. */
  sendResult(json: Answer, prefix: string): void;
  /** The same for an event, made once for equal prefixes. */
  deliver(event: SharedEvent, prefix: string): void;
  /** True while more waits to be sent than a subscriber may have waiting (R30). */
  isBacklogged(): boolean;
  close(closing: Closing): void;
}
