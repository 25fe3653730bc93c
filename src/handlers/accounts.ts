/** Login, its renewal, and profile (Spec §4.3, R42). */

import { usernameLengthMax } from '../auth/accounts.ts';
import { passwordBytesMax } from '../auth/password.ts';
import { createClientAddress } from '../http/client-address.ts';
import { readJson } from '../http/json.ts';
import { type Handler, type HttpResponse, uncachedResponse } from '../http/message.ts';
import { refuseForeign } from '../http/origins.ts';
import { andThen } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';
import { anyText, decoderOf } from './decode.ts';
import type { HandlerDeps } from './deps.ts';

type AccountDeps = Pick<HandlerDeps, 'login' | 'authenticate' | 'refresh' | 'config'>;

export function createAccountHandlers(deps: AccountDeps) {
  const { login, authenticate, refresh, config } = deps;
  const clientAddress = createClientAddress(config.trustedProxies);
  // An account record never changes (store/model.ts), so its response can be cached with it.
  const profiles = new WeakMap<Account, HttpResponse>();

  const toProfile = (account: Account): HttpResponse => {
    const known = profiles.get(account);
    if (known !== undefined) return known;
    const { username, email, id, roles } = account;
    const response = uncachedResponse(200, { username, email, id, roles });
    profiles.set(account, response);
    return response;
  };

  // R22: neither a token nor a profile belongs in a cache.
  return {
    /** `POST /auth/login` (Spec §4.3, R21). */
    login: async (request) => {
      // Read before the body: after the client has hung up, the socket has no address any more.
      const address = clientAddress(request);
      const credentials = await readJson(request, config.bodyBytesMax, toCredentials);
      return toTokenResponse(await login({ ...credentials, address }));
    },
    /** `POST /auth/refresh` (R42). A body is not read: all that counts is the token. */
    refresh: (request) => {
      refuseForeign(request, config);
      return andThen(refresh(request), toTokenResponse);
    },
    /** `GET /profile` (Spec §2.5, R22). */
    profile: (request) => andThen(authenticate(request), toProfile),
  } satisfies Readonly<Record<string, Handler>>;
}

const toTokenResponse = (access_token: string): HttpResponse =>
  uncachedResponse(200, { access_token });

/** R21: blank texts are not a fault of the body; they are wrong credentials. */
const decodeCredentials = decoderOf<{ username: string; password: string }>({
  username: anyText,
  password: anyText,
});

/** A login can wait for seconds: meanwhile it needs only the start of these texts, as copies. */
function toCredentials(body: unknown) {
  const { username, password } = decodeCredentials(body);
  return {
    username: copyStart(username, usernameLengthMax),
    password: copyStart(password, passwordBytesMax),
  };
}

/** One character more than the limit, so that a text that is too long stays too long. */
function copyStart(text: string, lengthMax: number): string {
  return Buffer.from(text.slice(0, lengthMax + 1)).toString();
}
