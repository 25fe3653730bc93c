/** The rules of a login (Spec §5 rule 1, R21): name and password in, access token out. */

import { AppError } from '../errors.ts';
import type { CountedLog } from '../log.ts';
import type { Store } from '../store/store.ts';
import type { Tokens } from './jwt.ts';
import type { LoginAttempt, LoginLimiter } from './login-limiter.ts';
import type { CheckPassword } from './password.ts';

export interface Credentials extends LoginAttempt {
  readonly password: string;
}

/**
 * A token where the password is right. Throws `invalid_credentials` alike for an unknown user and
 * a wrong password, after the same work; `too_many_requests` after too many failures;
 * `overloaded` where too many logins are being checked, or wait.
 */
export type Login = (credentials: Credentials) => Promise<string>;

export interface LoginDeps {
  readonly store: { readonly accounts: Pick<Store['accounts'], 'findForLogin'> };
  readonly limiter: LoginLimiter;
  readonly checkPassword: CheckPassword;
  readonly tokens: Tokens;
  readonly security: CountedLog;
}

export function createLogin(deps: LoginDeps): Login {
  const { store, limiter, checkPassword, tokens, security } = deps;
  return async (credentials) => {
    const failures = await limiter.enter(credentials);
    const account = await store.accounts.findForLogin(credentials.username);
    // Those that are under way or wait at this moment may all still fail: the count can pass its
    // limit by as many as are checked at once.
    const isRight = await checkPassword(credentials.password, account?.passwordHash);
    if (account === undefined || !isRight) {
      await limiter.fail(credentials);
      // A name that nobody has may be a password in the wrong field.
      security('login failed', { client: credentials.address, account: account?.username });
      throw new AppError('invalid_credentials', 'The username or the password is wrong.');
    }
    if (failures > 0) await limiter.succeed(credentials);
    return tokens.sign(account);
  };
}
