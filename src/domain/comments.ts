/** Adding a comment: it is stored, then published, in the order stored (R30). */

import { andThen } from '../maybe-promise.ts';
import type { Comment } from '../store/model.ts';
import type { Store } from '../store/store.ts';

/** Returns undefined if the post does not exist: nothing is stored or published then. */
export type AddComment = Store['comments']['add'];

/** `publish` delivers a comment to every subscriber of `commentAdded`. */
export function createAddComment(
  { comments }: Pick<Store, 'comments'>,
  publish: (comment: Comment) => void,
): AddComment {
  const add: AddComment = (postId, content) => comments.add(postId, content);
  // A store that other nodes write to reports every new comment itself, these included.
  if (comments.watch !== undefined) return add;
  return (postId, content) =>
    andThen(add(postId, content), (comment) => {
      if (comment !== undefined) publish(comment);
      return comment;
    });
}
