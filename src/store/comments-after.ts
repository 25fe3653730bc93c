/**
 * What the port of comments takes and returns: with what they are added, and with which places
 * subscriptions resume (R41).
 */

import type { Comment } from './model.ts';
import type { Once } from './once.ts';

/** What a comment has beside its text. */
export interface AddOptions {
  readonly name?: Comment['name'] | undefined;
  readonly authorId?: Comment['authorId'] | undefined;
  readonly once?: Once | undefined;
  /** It waits, without a place, until it is approved (R48): only `pending` has it. */
  readonly isPending?: boolean | undefined;
}

/** A place in the order in which comments are stored: of two, the later one is greater. */
export type Place = number | string;

export interface PlacedComment {
  readonly comment: Comment;
  readonly place: Place;
}

/** What a page of the comments after a place holds. */
export interface AfterRange {
  /** Only the comments of this post. */
  readonly postId: string | undefined;
  /** Maximum number of comments. */
  readonly limit: number;
}

export interface PlacedPage {
  readonly found: readonly PlacedComment[];
  /** True if there were no more comments when the page was read. */
  readonly isLast: boolean;
}
