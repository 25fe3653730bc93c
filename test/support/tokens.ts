/** Tokens, read and made here a second time (R20, R42). */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createTokens } from '../../dist/auth/jwt.js';

/** `secret`: the key that signs the token. */
export function toCredential(secret: Buffer | string, passwordHash: string): string {
  const key = createHmac('sha256', secret).update('inkwell credential key').digest();
  const digest = createHmac('sha256', key).update(passwordHash).digest();
  return digest.subarray(0, 16).toString('base64url');
}

/** The claims of a token, which is not verified. */
export function readClaims(token: string): Readonly<Record<string, unknown>> {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  return JSON.parse(payload) as Readonly<Record<string, unknown>>;
}

export const secret = Buffer.alloc(32, 7);
export const passwordHash = 'scrypt$1$1$1$a$b';
export const person = { username: 'user', email: 'user@example.com', roles: ['USER', 'ADMIN'] };
export const account = { ...person, passwordHash };
export const startSeconds = 1_700_000_000;

/** At a clock that stands still. */
export function createOwn(
  secrets: readonly [Buffer, ...Buffer[]] = [secret],
  clock = { seconds: startSeconds },
) {
  const now = (): Date => new Date(clock.seconds * 1000);
  return createTokens({ secrets, ttlSeconds: 60, sessionSecondsMax: 150, now });
}

export const toSegment = (text: string | Buffer): string => Buffer.from(text).toString('base64url');
export const sign = (input: string, key: Buffer = secret): string =>
  `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`;
/** A token that is signed well, whatever it says. */
export const forge = (header: string | Buffer, payload: string | Buffer): string =>
  sign(`${toSegment(header)}.${toSegment(payload)}`);

export const toKeyId = (key: Buffer): string =>
  createHmac('sha256', key).update('inkwell key id').digest('base64url').slice(0, 8);

export const goodHeader = '{"alg":"HS256","typ":"JWT"}';
const { username: sub, ...more } = person;
const times = { iat: startSeconds, exp: startSeconds + 60, auth_time: startSeconds };
export const goodClaims = {
  sub,
  ...more,
  ...times,
  credential: toCredential(secret, passwordHash),
};
export const goodPayload = JSON.stringify(goodClaims);

export type Verified = ReturnType<ReturnType<typeof createTokens>['verify']>;

export function claimsOf(verified: Verified): Exclude<Verified, string> {
  assert.ok(typeof verified !== 'string', 'refused');
  return verified;
}
