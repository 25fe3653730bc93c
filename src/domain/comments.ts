/** Adding a comment: stored first, announced second, in the order stored (R30). */

import { andThen } from '../maybe-promise.ts';
import type { Comment } from '../store/model.ts';
import type { Store } from '../store/store.ts';

/** Gives undefined where there is no such post: nothing is stored, nothing is announced. */
export type AddComment = Store['comments']['add'];

/** `publish`: tells every subscriber of `commentAdded`. */
export function createAddComment(
  { comments }: Pick<Store, 'comments'>,
  publish: (comment: Comment) => void,
): AddComment {
  const add: AddComment = (postId, content) => comments.add(postId, content);
  // A store that others write to as well tells its watchers of their comments and of these.
  if (comments.watch !== undefined) return add;
  return (postId, content) =>
    andThen(add(postId, content), (comment) => {
      if (comment !== undefined) publish(comment);
      return comment;
    });
}
