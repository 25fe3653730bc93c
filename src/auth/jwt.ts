/**
 * Signed access tokens: JWS compact serialization with HS256 and nothing else (RFC 7515, RFC 7519,
 * RFC 8725). Offers `createTokens`, which signs and verifies, and `verifySignature` below it.
 *
 * 1. A login begins a session. Its tokens have one `auth_time`, the second of the login, and can be
 *    renewed until SESSION_SECONDS_MAX have passed since then (R42).
 * 2. A token belongs to the password of its account: `credential` is an HMAC of the password hash.
 *    The key of the HMAC is derived from the key that signs the token, so that a credential reveals
 *    nothing of the hash, and two services with one account have different credentials.
 * 3. The verifier of a token finds the account, and asks whether the token still belongs to it.
 *
 * For example, with a lifetime of 60 and a session of 150 seconds, of a login at 1000:
 *
 *     login at 1000     exp 1060, auth_time 1000
 *     renewed at 1050   exp 1110, auth_time 1000
 *     renewed at 1100   exp 1160, auth_time 1000
 *     renewed at 1150   refused; the token before it is valid for ten seconds more
 */

import { isUtf8 } from 'node:buffer';
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto';
import { BoundedMap } from '../bounded-map.ts';
import { isObject } from '../http/json.ts';
import type { Account } from '../store/model.ts';

/** The claims of a token (Spec §5 rule 2). Times are whole seconds since 1970. */
export interface Claims {
  readonly sub: string;
  readonly email: string;
  readonly roles: readonly string[];
  readonly exp: number;
  /** When the login was; 0 for a token without `auth_time`, which cannot be renewed. */
  readonly authTime: number;
  /** True if the account has the password that it had when the token was made. */
  readonly isOf: (account: Pick<Account, 'passwordHash'>) => boolean;
}

/**
 * Why a token is refused: it is not valid now; no key of this service has signed it; or it is not
 * a token that this service writes. Clients are told none of this; operators count it.
 */
type TokenFault = 'expired' | 'signature' | 'malformed';

export type Tokens = ReturnType<typeof createTokens>;

interface TokensOptions {
  /**
   * The first secret signs, and every one verifies, so that a key can be replaced without refusing
   * valid tokens. No two are equal.
   */
  readonly secrets: readonly [Buffer, ...Buffer[]];
  readonly ttlSeconds: number;
  readonly sessionSecondsMax: number;
  readonly now: () => Date;
}

/** Longer tokens are refused unparsed. The limits in `auth/accounts.ts` keep tokens shorter. */
export const tokenLengthMax = 4_096;

/** Memory of the verified tokens: a token costs one HMAC, not one for each request. */
const verifiedBytesMax = 4 * 1024 * 1024;

export function createTokens({ secrets, ttlSeconds, sessionSecondsMax, now }: TokensOptions) {
  const signing = createSecretKey(secrets[0]);
  const keys = [signing, ...secrets.slice(1).map((bytes) => createSecretKey(bytes))];
  // The key is the whole token. Only valid tokens are cached, so that a client without the signing
  // key cannot fill the cache.
  const verified = new BoundedMap<Claims>(verifiedBytesMax);

  /** Returns a token that expires after its time to live; by default of a new session. */
  const sign = (account: Omit<Account, 'id'>, authTime?: number): string => {
    const { username: sub, email, roles, passwordHash } = account;
    const iat = Math.floor(now().getTime() / 1000);
    const times = { iat, exp: iat + ttlSeconds, auth_time: authTime ?? iat };
    const credential = toCredential(signing, passwordHash);
    const header = toSegment({ alg: 'HS256', typ: 'JWT', kid: toKeyId(signing) });
    const input = `${header}.${toSegment({ sub, email, roles, ...times, credential })}`;
    return `${input}.${toSignature(signing, input)}`;
  };

  return {
    sign,

    /** Returns a new token of the same session, or undefined if the session has ended. */
    renew({ authTime }: Pick<Claims, 'authTime'>, account: Account): string | undefined {
      const hasEnded = now().getTime() / 1000 >= authTime + sessionSecondsMax;
      return hasEnded ? undefined : sign(account, authTime);
    },

    /** Returns the claims of a token that is valid now, or why the token is refused. */
    verify(token: string): Claims | TokenFault {
      const nowSeconds = now().getTime() / 1000;
      const cached = verified.get(token);
      if (cached !== undefined) return nowSeconds < cached.exp ? cached : 'expired';
      const claims = readToken(keys, token, nowSeconds);
      if (typeof claims === 'string') return claims;
      // Upper estimate for a token, its claims, whose texts may take two bytes a character, and the
      // password hash that they were compared with.
      const bytes = 1_280 + 3 * token.length;
      // Copied, because a slice would keep the header that it was cut out of.
      verified.set(Buffer.from(token).toString(), claims, bytes);
      return claims;
    },
  };
}

/**
 * Returns a key's identifier (`kid`, RFC 7515 §4.1.4). It is an HMAC, so it reveals no more about
 * the key than any token does. Signed input contains a dot, so it never equals the HMAC's label.
 */
function toKeyId(key: KeyObject): string {
  return toSignature(key, 'inkwell key id').slice(0, 8);
}

function toCredential(key: KeyObject, passwordHash: string): string {
  const derived = createHmac('sha256', key).update('inkwell credential key').digest();
  const digest = createHmac('sha256', derived).update(passwordHash).digest();
  return digest.subarray(0, 16).toString('base64url');
}

/** The texts are compared as they are: the credential is part of what was signed. */
function createIsOf(key: KeyObject, credential: string): Claims['isOf'] {
  // The hash that was found equal last, so that a token costs one HMAC, not one for each request.
  let known: string | undefined;
  return ({ passwordHash }) => {
    if (passwordHash === known) return true;
    if (toCredential(key, passwordHash) !== credential) return false;
    known = passwordHash;
    return true;
  };
}

/** The key that a token names, and its payload, which is not checked. */
interface Signed {
  readonly kid: string | undefined;
  readonly payload: Buffer;
}

/**
 * Returns the content of a token in compact form if `key` made its signature, otherwise its fault.
 * The header must be one that this service can have written; `kid` is not checked.
 */
export function verifySignature(key: KeyObject, token: string): Signed | TokenFault {
  const form = token.length > tokenLengthMax ? null : compactForm.exec(token);
  if (form === null) return 'malformed';
  const [header = '', payload = '', signature = ''] = form.slice(1);
  // The text is compared, not the decoded bytes: the last of the 43 characters has two unused bits,
  // so that four different texts decode to the same bytes.
  const expected = Buffer.from(toSignature(key, `${header}.${payload}`));
  if (!timingSafeEqual(expected, Buffer.from(signature))) return 'signature';
  const members = parseObject(fromSegment(header));
  const content = fromSegment(payload);
  if (members === undefined || content === undefined || !isHeader(members)) return 'malformed';
  return { kid: members['kid'] as string | undefined, payload: content }; // see `isHeader`
}

/** Three segments of base64url without padding; an HMAC of 32 bytes has 43 characters. */
const compactForm = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;

/**
 * Returns the claims of a token that one of the keys has signed. A `kid` selects one key, and an
 * unknown `kid` is refused; without `kid` (it is optional, RFC 7515 §4.1.4) every key is tried. The
 * payload is not parsed before the signature is verified.
 */
function readToken(keys: readonly KeyObject[], token: string, nowSeconds: number) {
  for (const key of keys) {
    const signed = verifySignature(key, token);
    if (signed === 'signature') continue;
    if (typeof signed === 'string') return signed;
    if (signed.kid !== undefined && signed.kid !== toKeyId(key)) return 'signature';
    return decodeClaims(parseObject(signed.payload), key, nowSeconds);
  }
  return 'signature';
}

type Members = Readonly<Record<string, unknown>>;

/**
 * A header with any other member is refused. This covers `crit`, as RFC 7515 §4.1.11 demands of a
 * reader without extensions, and keys or links to keys in the header (`jwk`, `jku`, `x5c`), which
 * are never used.
 */
function isHeader({ alg, typ = 'JWT', kid = '', ...others }: Members): boolean {
  const isType = typeof typ === 'string' && typ.toUpperCase() === 'JWT';
  const isKnown = typeof kid === 'string' && Object.keys(others).length === 0;
  return alg === 'HS256' && isType && isKnown;
}

/**
 * Returns the claims if they are complete and valid now. A token expires at the start of the second
 * `exp`, with no leeway (R22, RFC 7519 §4.1.4). A token with an audience is refused (§4.1.3), and
 * so is one without `credential`: no change of a password would end it.
 */
function decodeClaims(
  members: Members | undefined,
  key: KeyObject,
  nowSeconds: number,
): Claims | TokenFault {
  if (members === undefined || Object.hasOwn(members, 'aud')) return 'malformed';
  const { sub, email, roles, credential, exp, iat = 0, nbf = 0, auth_time: authTime = 0 } = members;
  if (typeof sub !== 'string' || typeof email !== 'string' || !isStrings(roles)) return 'malformed';
  if (typeof credential !== 'string') return 'malformed';
  if (!isTime(exp) || !isTime(iat) || !isTime(nbf) || !isTime(authTime)) return 'malformed';
  if (nowSeconds < nbf || nowSeconds >= exp) return 'expired';
  return { sub, email, roles, exp, authTime, isOf: createIsOf(key, credential) };
}

/** RFC 7519 §2 allows fractions of a second; this service writes and reads whole ones (R22). */
function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0; // a safe integer is a number
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** The members of a JSON object in UTF-8, or undefined for anything else. */
function parseObject(bytes: Buffer | undefined): Members | undefined {
  if (bytes === undefined || !isUtf8(bytes)) return undefined;
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  // Duplicate names are refused (RFC 7515 §4, RFC 7519 §4). JSON.parse keeps the last of them, so
  // that the value has fewer members than the text.
  const isWhole = countMembers(text) === countMembers(JSON.stringify(value));
  return isWhole && isObject(value) ? value : undefined;
}

/** The number of members at every level: of colons outside strings. `json` must be valid. */
function countMembers(json: string): number {
  return json.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
}

function toSignature(key: KeyObject, input: string): string {
  return createHmac('sha256', key).update(input).digest('base64url');
}

function toSegment(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** Decodes base64url; undefined if the text is not the canonical encoding (RFC 4648 §3.5). */
function fromSegment(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : undefined;
}
