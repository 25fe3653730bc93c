/**
 * Passwords as scrypt hashes (RFC 7914). `hashPassword` creates a hash. `createPasswordChecker`
 * compares: a few at a time, and always with the same work.
 */

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { overloaded } from '../errors.ts';
import { createSerial, type Serial } from '../serial.ts';
import { type Standing, toPlace } from './standing.ts';

/** A parsed `scrypt$N$r$p$salt$hash`; salt and hash are base64url in the text. */
type PasswordHash = NonNullable<ReturnType<typeof parsePasswordHash>>;

/** Maximum length of a password in bytes of UTF-8. */
export const passwordBytesMax = 1_024;

/** About 40 ms and 16 MiB for each check: slow for a guesser, acceptable for a login. */
const defaults = { cost: 2 ** 14, blockSize: 8, parallelization: 1 } as const;
const saltBytes = 16;
const hashBytes = 32;

/** Returns the text to store. Throws RangeError if the password exceeds `passwordBytesMax`. */
export async function hashPassword(password: string): Promise<string> {
  if (Buffer.byteLength(password) > passwordBytesMax) {
    throw new RangeError(`A password has at most ${passwordBytesMax} bytes.`);
  }
  const salt = randomBytes(saltBytes);
  const hash = await derive(password, { ...defaults, salt, hash: Buffer.alloc(hashBytes) });
  const { cost, blockSize, parallelization } = defaults;
  return `scrypt$${cost}$${blockSize}$${parallelization}$${toText(salt)}$${toText(hash)}`;
}

/** True if `hash` was made from `password`. A wrong password takes as long as the right one. */
export async function verifyPassword(password: string, hash: PasswordHash): Promise<boolean> {
  // One that is too long is wrong. It is not hashed (it may be a megabyte); the work is the same.
  const isShort = Buffer.byteLength(password) <= passwordBytesMax;
  const derived = await derive(isShort ? password : '', hash);
  return timingSafeEqual(derived, hash.hash) && isShort;
}

/**
 * Parses the text of a hash. Returns undefined if it is malformed, if its parameters are weaker
 * than those of `hashPassword`, or if a check would need more than 128 MiB.
 */
export function parsePasswordHash(text: string) {
  const found = hashForm.exec(text);
  if (found === null) return undefined;
  const [, cost = 0, blockSize = 0, parallelization = 0] = found.map(Number);
  const [saltText = '', hashText = ''] = found.slice(4);
  const salt = Buffer.from(saltText, 'base64url');
  const hash = Buffer.from(hashText, 'base64url');
  const isBounded =
    Number.isInteger(Math.log2(cost)) &&
    cost >= defaults.cost &&
    blockSize >= defaults.blockSize &&
    cost * blockSize <= 2 ** 20 && // 128 bytes each (RFC 7914 §5)
    parallelization <= 4;
  const isCanonical = toText(salt) === saltText && toText(hash) === hashText;
  if (!isBounded || !isCanonical) return undefined;
  return { cost, blockSize, parallelization, salt, hash };
}

/** A salt of 16 to 64 bytes and a hash of 32: 22 to 86 and 43 characters. */
const hashForm =
  /^scrypt\$([1-9][0-9]{4,5})\$([1-9][0-9]?)\$([1-9])\$([A-Za-z0-9_-]{22,86})\$([A-Za-z0-9_-]{43})$/;

/** Characters of a new password. */
export const passwordLengthMin = 12;

/** Returns why a text can be no password, or undefined. */
export function faultOfText(password: string): string | undefined {
  if (Buffer.byteLength(password) > passwordBytesMax) {
    return `must have at most ${passwordBytesMax} bytes`;
  }
  // Control characters come from arrow keys or binary files, and cannot be typed at a login.
  return /\p{Cc}/u.test(password) ? 'must not have control characters' : undefined;
}

/** Returns why an account cannot get this password, or undefined. */
export function faultOfPassword(password: string, username: string): string | undefined {
  const fault = faultOfText(password);
  if (fault !== undefined) return fault;
  if (password.length < passwordLengthMin) {
    return `must have at least ${passwordLengthMin} characters`;
  }
  const isName = password.toLowerCase() === username.toLowerCase();
  return isName ? 'must differ from the username' : undefined;
}

export type CheckPassword = ReturnType<typeof createPasswordChecker>;

/** Leaves two of libuv's four threads free for file system and DNS operations. */
export const checksUnderWayMax = 2;

/** The hash of random bytes that were not kept. */
const defaultDecoyHash =
  'scrypt$16384$8$1$mGIJ5RuHfGs6khJHn9OnYw$nITIG69x1SVuL55H3a-t7A5KYu5MLnecTMnR0Evvx7A';

/** The line of all work with scrypt. `queueMax`: how much may wait while other work runs. */
export function createPasswordLine(queueMax: number): Serial {
  return createSerial({
    atOnce: checksUnderWayMax,
    waitingMax: queueMax,
    toRejection: () => overloaded('Too many logins are being checked. Try again soon.'),
  });
}

/**
 * `decoyHash`: what a password is compared with if there is no account; it must cost as much as the
 * hashes of accounts.
 */
export function createPasswordChecker(line: Serial, decoyHash = defaultDecoyHash) {
  /**
   * True if `hash` was made from `password`. Without a hash (no such account) the work is the same,
   * so that the time does not reveal which accounts exist (R21). Rejects with `overloaded` if too
   * many checks wait, and those of others go first.
   */
  return async (
    password: string,
    hash: string | undefined,
    standing: Standing,
  ): Promise<boolean> => {
    const expected = parsePasswordHash(hash ?? decoyHash);
    // Account hashes were validated when they were read: an invalid one is an internal error.
    if (expected === undefined) throw new Error('The stored password hash is malformed.');
    // R21, RFC 8265 §4.2.2: as sent, then composed, which some keyboards and systems do not send.
    const composed = password.normalize('NFC');
    const check = async (): Promise<boolean> =>
      (await verifyPassword(password, expected)) ||
      (composed !== password && (await verifyPassword(composed, expected)));
    return (await line.run(check, toPlace(line, standing))) && hash !== undefined;
  };
}

function derive(password: string, { salt, hash, ...parameters }: PasswordHash): Promise<Buffer> {
  const { cost, blockSize, parallelization } = parameters;
  // The memory that scrypt needs (RFC 7914 §5), plus one MiB.
  const maxmem = 128 * blockSize * (cost + parallelization) + 2 ** 20;
  return new Promise((resolve, reject) => {
    scrypt(password, salt, hash.length, { ...parameters, maxmem }, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}

function toText(bytes: Buffer): string {
  return bytes.toString('base64url');
}
