/** Login, its renewal, another password, and profile (Spec §4.3, R42, R51). */

import { usernameLengthMax } from '../auth/accounts.ts';
import { faultOfPassword, passwordBytesMax } from '../auth/password.ts';
import { createClientAddress } from '../http/client-address.ts';
import { readJson } from '../http/json.ts';
import {
  emptyResponse,
  type Handler,
  type HttpResponse,
  uncachedResponse,
} from '../http/message.ts';
import { refuseForeign } from '../http/origins.ts';
import type { Account } from '../store/model.ts';
import { anyText, decoderOf, type Rule } from './decode.ts';
import type { HandlerDeps } from './deps.ts';

type AccountDeps = Pick<
  HandlerDeps,
  'login' | 'changePassword' | 'authenticate' | 'refresh' | 'config'
>;

export function createAccountHandlers(deps: AccountDeps) {
  const { login, changePassword, authenticate, refresh, config } = deps;
  const clientAddress = createClientAddress(config.trustedProxies);
  // R22: neither a token nor a profile belongs in a cache.
  return {
    /** `POST /auth/login` (Spec §4.3, R21). */
    login: async (request) => {
      // Read before the body: after the client has hung up, the socket has no address any more.
      const address = clientAddress(request);
      const credentials = await readJson(request, config.bodyBytesMax, toCredentials);
      const token = await login({ ...credentials, address, requestId: request.id });
      request.account = credentials.username;
      return toTokenResponse(token);
    },
    /** `POST /auth/refresh` (R42). A body is not read: all that counts is the token. */
    refresh: async (request) => {
      refuseForeign(request, config);
      return toTokenResponse(await refresh(request));
    },
    /** `POST /auth/password` (R51). */
    password: async (request) => {
      const address = clientAddress(request);
      const account = await authenticate(request);
      const decode = toPasswords(account.username);
      const passwords = await readJson(request, config.bodyBytesMax, decode);
      await changePassword(account, { ...passwords, address, requestId: request.id });
      return emptyResponse(204);
    },
    /** `GET /profile` (Spec §2.5, R22). */
    profile: async (request) => toProfile(await authenticate(request)),
  } satisfies Readonly<Record<string, Handler>>;
}

function toProfile({ username, email, id, roles }: Account): HttpResponse {
  return uncachedResponse(200, { username, email, id, roles });
}

const toTokenResponse = (access_token: string): HttpResponse =>
  uncachedResponse(200, { access_token });

/** R21: blank texts are not a fault of the body; they are wrong credentials. */
const decodeCredentials = decoderOf<{ username: string; password: string }>({
  username: anyText,
  password: anyText,
});

/** The new password of an account is stored composed (R21). */
function toPasswords(username: string) {
  const aPassword: Rule = (value) =>
    anyText(value) ?? faultOfPassword(String(value).normalize('NFC'), username);
  const decode = decoderOf<{ password: string; newPassword: string }>({
    password: anyText,
    newPassword: aPassword,
  });
  return (body: unknown) => {
    const { password, newPassword } = decode(body);
    return {
      password: copyStart(password, passwordBytesMax),
      newPassword: newPassword.normalize('NFC'),
    };
  };
}

/** A login can wait for seconds: meanwhile it needs only the start of these texts, as copies. */
function toCredentials(body: unknown) {
  const { username, password } = decodeCredentials(body);
  return {
    username: copyStart(toStoredForm(username), usernameLengthMax),
    password: copyStart(password, passwordBytesMax),
  };
}

/**
 * As accounts have it (R21): macOS sends it decomposed, keyboards of phones put a space behind it.
 * What is too long stays so: at most four characters compose to one.
 */
function toStoredForm(username: string): string {
  const bounded = username.trim().slice(0, 4 * usernameLengthMax + 1);
  return bounded.normalize('NFC');
}

/** One character more than the limit, so that a text that is too long stays too long. */
function copyStart(text: string, lengthMax: number): string {
  return Buffer.from(text.slice(0, lengthMax + 1)).toString();
}
