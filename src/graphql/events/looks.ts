/**
 * What is known of the posts of comments that become events (R44). A look reads the post of a
 * comment, once for all groups, and begins after the comment was stored. So whatever had hidden the
 * post before that, on any node, is seen.
 *
 * A look is current until this node changes the post, and for a second at most: another node may
 * change it meanwhile. A resumption uses no look that is older than its request: a change of the
 * status takes effect with the next request on every node (R44).
 */

import { BoundedMap } from '../../bounded-map.ts';
import type { Comment, Post } from '../../store/model.ts';
import type { Store } from '../../store/store.ts';

const currentMilliseconds = 1_000;
/** Looks that are kept: less than a kibibyte each. */
const looksMax = 1_024;

export interface Look {
  /** The post as far as it decides who reads it; undefined if there is none. Rejects as a read. */
  readonly post: Promise<Pick<Post, 'status' | 'authorId'> | undefined>;
  readonly begunAt: number;
  isCurrent(): boolean;
}

export type Looks = ReturnType<typeof createLooks>;

export function createLooks({ posts, changes }: Pick<Store, 'posts' | 'changes'>) {
  const looks = new BoundedMap<Look>(looksMax);

  const begin = ({ id, postId }: Comment): Look => {
    const begunAt = performance.now();
    const slot = changes().slotOf('posts', postId);
    const before = changes().at(slot);
    let until = Infinity;
    const read = async (): Look['post'] => {
      try {
        const post = await posts.find(postId);
        until = performance.now() + currentMilliseconds;
        // Without its text, which can be long.
        return post && { status: post.status, authorId: post.authorId };
      } catch (error) {
        until = 0;
        throw error;
      }
    };
    const isCurrent = (): boolean => performance.now() < until && changes().at(slot) === before;
    const look = { post: read(), begunAt, isCurrent };
    // Nobody may ever ask for one that was begun ahead.
    look.post.catch(() => undefined);
    looks.set(id, look);
    return look;
  };
  const find = ({ id }: Comment, since: number): Look | undefined => {
    const look = looks.get(id);
    return look?.isCurrent() === true && look.begunAt >= since ? look : undefined;
  };
  return {
    /**
     * A current look, which has not begun before `since`. If it has to begin, those of the comments
     * `ahead` begin with it.
     */
    of(comment: Comment, ahead: () => readonly Comment[], since = 0): Look {
      const known = find(comment, since);
      if (known !== undefined) return known;
      for (const each of ahead()) if (find(each, since) === undefined) begin(each);
      return begin(comment);
    },
  };
}
