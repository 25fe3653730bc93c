/** Who may read and write (R23, R36), by REQUIRE_AUTH. */

import type { Bearer } from '../auth/bearer.ts';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { Handler, HttpRequest } from '../http/message.ts';
import { andThen } from '../maybe-promise.ts';

/** Lets only requests with a valid token reach the handler. */
export type Guard = (handler: Handler) => Handler;

export interface Access {
  /** For routes that change data. */
  readonly writing: Guard;
  /** For routes that only read. */
  readonly reading: Guard;
  /** Throws 403 if the account of the request may not change what this account has written. */
  checkOwner(request: HttpRequest, authorId: string | null): Promise<void>;
}

export function createAccess(
  bearer: Pick<Bearer, 'authenticate'>,
  { requireAuth }: Pick<Config, 'requireAuth'>,
): Access {
  const guard: Guard = (handler) => (request) =>
    andThen(bearer.authenticate(request), () => handler(request));
  const noGuard: Guard = (handler) => handler;
  const hasOwners = requireAuth === 'owners' || requireAuth === 'members';
  return {
    writing: requireAuth === 'none' ? noGuard : guard,
    reading: requireAuth === 'members' ? guard : noGuard,
    async checkOwner(request, authorId) {
      if (!hasOwners) return;
      const { id, roles } = await bearer.authenticate(request);
      if (id === authorId || roles.includes('ADMIN')) return;
      throw new AppError('forbidden', 'Only the author, or an administrator, may change this.');
    },
  };
}
