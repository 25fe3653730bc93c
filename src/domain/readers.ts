/**
 * What an account reads and changes with REQUIRE_AUTH `owners` and `members`.
 *
 * 1. It changes its own posts, and all if it has the role `ADMIN` (R36). A post without author is
 *    that of `ADMIN` alone; a comment is removed by those who may change its post.
 * 2. Who may change a post reads it, whatever its status, and its comments. For others it does not
 *    exist unless it is published (R44).
 * 3. Lists have published posts, and with another status the reader's own; those of `ADMIN` have
 *    all posts.
 *
 * Nothing else decides about this: handlers and resolvers read `Records`, which a reader has.
 */

import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Account, Comment, Post, PostStatus } from '../store/model.ts';
import type { List, Store } from '../store/store.ts';

/** Who asks. With the other values of REQUIRE_AUTH there is none: everybody reads everything. */
export interface Reader {
  /** The id of the account; undefined without a token. */
  readonly id: string | undefined;
  readonly isAdmin: boolean;
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
    find(id: string): MaybePromise<Comment | undefined>;
    /** Takes the post, so that it was found before. Oldest first (R2). */
    ofPost(post: Post): List<Comment>;
  };
  readonly authors: Store['authors'];
  readonly todos: Pick<Store['todos'], 'all' | 'find'>;
  readonly articles: Pick<Store['articles'], 'all' | 'find'>;
}

/** An id that no account has. */
const nobody = '00000000-0000-0000-0000-000000000000';

export function toReader(account: Account | undefined): Reader {
  return { id: account?.id, isAdmin: account?.roles.includes('ADMIN') ?? false };
}

/** Throws 403 if the reader may not change what this account has written. */
export function checkOwner(reader: Reader | undefined, authorId: string | null): void {
  if (reader === undefined || isOwner(reader, authorId)) return;
  throw new AppError('forbidden', 'Only the author, or an administrator, may change this.');
}

/** Whether the post, and its comments, exist for the reader. */
export function mayRead(
  reader: Reader | undefined,
  post: Pick<Post, 'status' | 'authorId'> | undefined,
): boolean {
  if (reader === undefined) return true;
  return post !== undefined && (post.status === 'PUBLISHED' || isOwner(reader, post.authorId));
}

/** Selects the posts of a list that exist for the reader. */
export function toReadable(filter: PostFilter, reader: Reader | undefined): PostFilter {
  if (reader === undefined || reader.isAdmin) return filter;
  const { author, status = 'PUBLISHED' } = filter;
  if (status === 'PUBLISHED') return { author, status };
  const own = reader.id ?? nobody;
  return { author: (author ?? own) === own ? own : nobody, status };
}

function isOwner({ id, isAdmin }: Reader, authorId: string | null): boolean {
  return isAdmin || (id !== undefined && id === authorId);
}
