/** The rules of a login (Spec §5 rule 1, R21): name and password in, access token out. */

import { AppError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import type { Tokens } from './jwt.ts';
import type { LoginAttempt, LoginLimiter } from './login-limiter.ts';
import type { CheckPassword } from './password.ts';
import type { LogSecurity } from '../watch/service-metrics.ts';

export type Login = ReturnType<typeof createLogin>;

export interface LoginDeps {
  readonly store: { readonly accounts: Pick<Store['accounts'], 'findForLogin'> };
  readonly limiter: LoginLimiter;
  readonly checkPassword: CheckPassword;
  readonly tokens: Tokens;
  readonly security: LogSecurity;
}

export function createLogin(deps: LoginDeps) {
  const { store, limiter, checkPassword, tokens, security } = deps;
  /**
   * Resolves with a token if the password is right. An unknown user and a wrong password are
   * refused alike, with `invalid_credentials` after the same work. Rejects with `too_many_requests`
   * after too many failures, and with `overloaded` if too many logins are checked or wait.
   */
  return async (credentials: LoginAttempt & { readonly password: string }): Promise<string> => {
    const failures = await limiter.enter(credentials);
    const account = await store.accounts.findForLogin(credentials.username);
    // Logins that are checked at the same time can all fail, so that the count can exceed its limit
    // by that number.
    const isRight = await checkPassword(credentials.password, account?.passwordHash);
    if (account === undefined || !isRight) {
      limiter.fail(credentials);
      // An unknown name is not logged: it may be a password typed into the wrong field.
      security('login failed', { client: credentials.address, account: account?.username });
      throw new AppError('invalid_credentials', 'The username or the password is wrong.');
    }
    if (failures > 0) limiter.succeed(credentials);
    return tokens.sign(account);
  };
}
