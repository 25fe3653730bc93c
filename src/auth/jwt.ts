/**
 * Signed access tokens: JWS compact serialization with HS256 and nothing else (RFC 7515, RFC 7519,
 * RFC 8725). Offers `createTokens`, which signs and verifies, and `verifySignature` below it.
 */

import { isUtf8 } from 'node:buffer';
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto';
import { BoundedMap } from '../bounded-map.ts';
import { isObject } from '../http/json.ts';
import type { Account } from '../store/model.ts';

/** The claims of a token (Spec §5 rule 2). Times are whole seconds since 1970. */
interface Claims {
  readonly sub: string;
  readonly email: string;
  readonly roles: readonly string[];
  readonly exp: number;
}

/**
 * Why a token is refused: it is not valid now; no key of this service has signed it; or it is not
 * a token that this service writes. Clients are told none of this; operators count it.
 */
export type TokenFault = 'expired' | 'signature' | 'malformed';

export type Tokens = ReturnType<typeof createTokens>;

interface TokensOptions {
  /**
   * The first secret signs, and every one verifies, so that a key can be replaced without refusing
   * valid tokens. No two are equal.
   */
  readonly secrets: readonly [Buffer, ...Buffer[]];
  readonly ttlSeconds: number;
  readonly now: () => Date;
}

/** Longer tokens are refused unparsed. The limits in `auth/accounts.ts` keep tokens shorter. */
export const tokenLengthMax = 4_096;

/** Memory of the verified tokens: a token costs one HMAC, not one for each request. */
const verifiedBytesMax = 4 * 1024 * 1024;

export function createTokens({ secrets, ttlSeconds, now }: TokensOptions) {
  const signing = createSecretKey(secrets[0]);
  const keys = [signing, ...secrets.slice(1).map((bytes) => createSecretKey(bytes))];
  // The key is the whole token. Only valid tokens are cached, so that a client without the signing
  // key cannot fill the cache.
  const verified = new BoundedMap<Claims>(verifiedBytesMax);

  return {
    /** Returns a token for this account that expires after the configured time to live. */
    sign({ username, email, roles }: Pick<Account, 'username' | 'email' | 'roles'>): string {
      const iat = Math.floor(now().getTime() / 1000);
      const exp = iat + ttlSeconds;
      const header = toSegment({ alg: 'HS256', typ: 'JWT', kid: toKeyId(signing) });
      const input = `${header}.${toSegment({ sub: username, email, roles, iat, exp })}`;
      return `${input}.${toSignature(signing, input)}`;
    },

    /** Returns the claims of a token that is valid now, or why the token is refused. */
    verify(token: string): Claims | TokenFault {
      const nowSeconds = now().getTime() / 1000;
      const cached = verified.get(token);
      if (cached !== undefined) return nowSeconds < cached.exp ? cached : 'expired';
      const claims = readToken(keys, token, nowSeconds);
      if (typeof claims === 'string') return claims;
      // Upper estimate for a token and its claims, whose texts may take two bytes a character.
      const bytes = 768 + 3 * token.length;
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
    return decodeClaims(parseObject(signed.payload), nowSeconds);
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
 * `exp`, with no leeway (R22, RFC 7519 §4.1.4). A token with an audience is refused (§4.1.3).
 */
function decodeClaims(members: Members | undefined, nowSeconds: number): Claims | TokenFault {
  if (members === undefined || Object.hasOwn(members, 'aud')) return 'malformed';
  const { sub, email, roles, exp, iat = 0, nbf = 0 } = members;
  if (typeof sub !== 'string' || typeof email !== 'string' || !isStrings(roles)) return 'malformed';
  if (!isTime(exp) || !isTime(iat) || !isTime(nbf)) return 'malformed';
  return nbf <= nowSeconds && nowSeconds < exp ? { sub, email, roles, exp } : 'expired';
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
