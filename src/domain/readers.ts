/**
 * What an account reads and changes with REQUIRE_AUTH `owners` and `members`, and of 4. with
 * COMMENTS `moderated`.
 *
 * 1. It changes its own posts, and all if it has the role `ADMIN` (R36). A post without author is
 *    that of `ADMIN` alone; a comment is removed by those who may change its post.
 * 2. Who may change a post reads it, whatever its status, and its comments. For others it does not
 *    exist unless it is published (R44).
 * 3. Lists have published posts, and with another status the reader's own; those of `ADMIN` have
 *    all posts.
 * 4. A comment that waits exists for `ADMIN` and the author of its post, who approve it (R48).
 *
 * Nothing else decides about this: handlers and resolvers read `Records`, which a reader has.
 */

import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Account, Comment, CommentStatus, Post, PostStatus } from '../store/model.ts';
import type { List, Store } from '../store/store.ts';

/** Who asks. There is none where everybody reads everything. */
export interface Reader extends Mode {
  /** The id of the account; undefined without a token. */
  readonly id: string | undefined;
  readonly isAdmin: boolean;
}

export interface Mode {
  /** Posts have owners (R36, R44). Otherwise everybody reads all of them. */
  readonly hasOwners: boolean;
  /** Comments wait until they are approved (R48). */
  readonly isModerated: boolean;
}

/** For those who moderate it, with its status. */
export interface SeenComment extends Comment {
  readonly status?: CommentStatus;
}

export interface CommentOfPost extends SeenComment {
  readonly post: Pick<Post, 'id' | 'title'>;
}

/** Selects posts (R37, R46). */
export interface PostFilter {
  readonly author?: string | undefined;
  readonly status?: PostStatus | undefined;
}

/** The records that exist for a reader. A store is none: its posts are those of everybody. */
export interface Records {
  readonly reader: Reader | undefined;
  readonly posts: {
    /** Newest first (R2). */
    list(filter: PostFilter): List<Post>;
    find(id: string): MaybePromise<Post | undefined>;
  };
  readonly comments: {
    find(id: string): MaybePromise<SeenComment | undefined>;
    /** Takes the post, so that it was found before. Oldest first (R2), and then those that wait. */
    ofPost(post: Post): List<SeenComment>;
    /** Newest first (R52), those with a status, or all: those that wait before the others. */
    all(status?: CommentStatus): List<CommentOfPost>;
  };
  readonly authors: Store['authors'];
  readonly todos: Pick<Store['todos'], 'all' | 'find'>;
  readonly articles: Pick<Store['articles'], 'all' | 'find'>;
}

/** An id that no account has. */
const nobody = '00000000-0000-0000-0000-000000000000';

export function toReader(account: Account | undefined, mode: Mode): Reader {
  return { ...mode, id: account?.id, isAdmin: account?.roles.includes('ADMIN') ?? false };
}

/** Throws 403 if the reader may not change what this account has written. */
export function checkOwner(reader: Reader | undefined, authorId: string | null): void {
  if (reader?.hasOwners !== true || isOwner(reader, authorId)) return;
  throw new AppError('forbidden', 'Only the author, or an administrator, may change this.');
}

/** Whether the post, and its comments, exist for the reader. */
export function mayRead(
  reader: Reader | undefined,
  post: Pick<Post, 'status' | 'authorId'> | undefined,
): boolean {
  if (reader?.hasOwners !== true) return true;
  return post !== undefined && (post.status === 'PUBLISHED' || isOwner(reader, post.authorId));
}

/** Whether the reader approves comments on the post, and so reads those that wait (R48). */
export function moderates(reader: Reader | undefined, { authorId }: Pick<Post, 'authorId'>) {
  return reader?.isModerated === true && isOwner(reader, authorId);
}

/** Whether there may be posts on which the reader does. */
export function isModerator(reader: Reader | undefined): boolean {
  return reader?.isModerated === true && reader.id !== undefined;
}

/** Selects the posts of a list that exist for the reader. */
export function toReadable(filter: PostFilter, reader: Reader | undefined): PostFilter {
  if (reader?.hasOwners !== true || reader.isAdmin) return filter;
  const { author, status = 'PUBLISHED' } = filter;
  if (status === 'PUBLISHED') return { author, status };
  const own = reader.id ?? nobody;
  return { author: (author ?? own) === own ? own : nobody, status };
}

function isOwner({ id, isAdmin }: Reader, authorId: string | null): boolean {
  return isAdmin || (id !== undefined && id === authorId);
}
