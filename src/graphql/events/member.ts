/** A member of a subscription group, independent of the transport that delivers its events. */

import type { GraphqlError } from '../errors.ts';
import type { SharedEvent } from './shared-event.ts';

/** Why a subscription ends, other than by the client. */
export type Ending =
  /** The source has no more events. */
  | { readonly kind: 'complete' }
  /** It never started: the variables are invalid, or the source could not be opened. */
  | { readonly kind: 'refused'; readonly errors: readonly GraphqlError[] }
  /** An error. `overloaded`: events came faster than they could be executed. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The server is stopping. */
  | { readonly kind: 'closing' };

/** One subscriber. Its methods must not throw. */
export interface Member {
  /**
   * Sends the event, if the member has not ended. A member for which more bytes are queued than a
   * subscriber may have ends instead, and leaves (R30).
   */
  next(event: SharedEvent): void;
  /** Called at most once, and never after the member has left. */
  end(ending: Ending): void;
}
