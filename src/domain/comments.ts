/** Adding a comment: stored first, announced second, in the order stored (R30). */

import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Comment } from '../store/model.ts';
import type { Store } from '../store/store.ts';

export interface CommentRules {
  /** Undefined where there is no such post: nothing is stored, nothing is announced. */
  add(postId: string, content: string): MaybePromise<Comment | undefined>;
}

export interface CommentDeps {
  readonly store: Store;
  /** Tells every subscriber of `commentAdded`. */
  readonly publish: (comment: Comment) => void;
}

export function createComments({ store, publish }: CommentDeps): CommentRules {
  // A store that others write to as well announces their comments and these in one order.
  if (store.comments.watch !== undefined) {
    store.comments.watch(publish);
    return { add: (postId, content) => store.comments.add(postId, content) };
  }
  const announce = (comment: Comment | undefined): Comment | undefined => {
    if (comment !== undefined) publish(comment);
    return comment;
  };
  return {
    add(postId, content) {
      return andThen(store.comments.add(postId, content), announce);
    },
  };
}
