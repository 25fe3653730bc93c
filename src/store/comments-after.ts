/** The part of the port with which subscriptions resume (R41): comments after a place. */

import type { Comment } from './model.ts';

/** A place in the order in which comments are stored, for the life of the process. */
export interface Place {
  readonly at: number | string;
  /** PostgreSQL: the timeline that `at` belongs to. */
  readonly timeline?: number;
}

/** What a page of the comments after a place holds. */
export interface AfterRange {
  /** Only the comments of this post. */
  readonly postId: string | undefined;
  /** Maximum number of comments. */
  readonly limit: number;
  /**
   * Called once, before the page is read, at the cut: the listener has had every comment up to it,
   * which is what pages can hold, and none behind it.
   */
  readonly onCut: () => void;
}

export interface PlacedPage {
  readonly found: readonly { readonly comment: Comment; readonly place: Place }[];
  /** True if there are no more comments up to the cut. */
  readonly isLast: boolean;
}
