/** A member of a subscription group, whatever transport carries the events to it. */

import type { GraphqlError } from '../errors.ts';
import type { SharedEvent } from './shared-event.ts';

/** How a subscription ends without being left. */
export type Ending =
  /** The source has no more events. */
  | { readonly kind: 'complete' }
  /** It never began: unusable variables, or the source could not be opened. */
  | { readonly kind: 'refused'; readonly errors: readonly GraphqlError[] }
  /** Something failed on the way. `overloaded`: events came faster than they could be executed. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The server stops. */
  | { readonly kind: 'closing' };

/** One subscriber. No method may throw. */
export interface Member {
  next(event: SharedEvent): void;
  /** Called at most once, and never after leaving. */
  end(ending: Ending): void;
  /** True while more waits for it than a subscriber may have waiting. */
  isBehind(): boolean;
  /** Ends the member because it is behind; it leaves the group (R30). */
  dismiss(): void;
}
