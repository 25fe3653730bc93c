/**
 * Which posts an account changes with REQUIRE_AUTH `owners` and `members` (R36): its own, and all
 * if it has the role `ADMIN`. A post without author is that of `ADMIN` alone; a comment is removed
 * by those who may change its post.
 */

import { AppError } from '../errors.ts';
import type { Account } from '../store/model.ts';

/** Who asks. With the other values of REQUIRE_AUTH there is none: everybody reads everything. */
export interface Reader {
  /** Of the account; undefined without a token. */
  readonly id: string | undefined;
  readonly isAdmin: boolean;
}

export function toReader(account: Account | undefined): Reader {
  return { id: account?.id, isAdmin: account?.roles.includes('ADMIN') ?? false };
}

/** Throws 403 if the reader may not change what this account has written. */
export function checkOwner(reader: Reader | undefined, authorId: string | null): void {
  if (reader === undefined || isOwner(reader, authorId)) return;
  throw new AppError('forbidden', 'Only the author, or an administrator, may change this.');
}

function isOwner({ id, isAdmin }: Reader, authorId: string | null): boolean {
  return isAdmin || (id !== undefined && id === authorId);
}
