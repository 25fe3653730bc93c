/**
 * Passwords as scrypt hashes (RFC 7914): `hashPassword` writes one, `createPasswordChecker`
 * compares, never more than a few at a time and always with the same work.
 */

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { AppError } from '../errors.ts';

/** A parsed `scrypt$N$r$p$salt$hash`; salt and hash are base64url in the text. */
export interface PasswordHash {
  readonly cost: number;
  readonly blockSize: number;
  readonly parallelization: number;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** A password has at most so many bytes of UTF-8. */
export const passwordBytesMax = 1_024;

/** About 40 ms and 16 MiB for one check: slow for a guesser, acceptable for a login. */
const defaults = { cost: 2 ** 14, blockSize: 8, parallelization: 1 } as const;
const saltBytes = 16;
const hashBytes = 32;

/** The text that an account keeps of its password. RangeError: longer than `passwordBytesMax`. */
export async function hashPassword(password: string): Promise<string> {
  if (Buffer.byteLength(password) > passwordBytesMax) {
    throw new RangeError(`A password has at most ${passwordBytesMax} bytes.`);
  }
  const salt = randomBytes(saltBytes);
  const hash = await derive(password, { ...defaults, salt, hash: Buffer.alloc(hashBytes) });
  const { cost, blockSize, parallelization } = defaults;
  return `scrypt$${cost}$${blockSize}$${parallelization}$${toText(salt)}$${toText(hash)}`;
}

/** True where `hash` was made of `password`. Takes as long for a wrong one as for the right one. */
export async function verifyPassword(password: string, hash: PasswordHash): Promise<boolean> {
  // One that is too long is wrong after the same work, and is not hashed: it could be a megabyte.
  const isShort = Buffer.byteLength(password) <= passwordBytesMax;
  const derived = await derive(isShort ? password : '', hash);
  return timingSafeEqual(derived, hash.hash) && isShort;
}

/**
 * Reads the text of a hash; undefined where it is none, or where its parameters are weaker than
 * those of `hashPassword`, or would take more than 128 MiB for one login.
 */
export function parsePasswordHash(text: string): PasswordHash | undefined {
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

/**
 * True where `hash` is there and was made of `password`. Without one (there is no such account) the
 * work is the same, so that the time does not tell which accounts exist (R21). Throws `overloaded`
 * where too many are waiting already.
 */
export type CheckPassword = (password: string, hash: string | undefined) => Promise<boolean>;

export interface PasswordCheckerOptions {
  /** Checks that may wait for those under way. */
  readonly queueMax: number;
  /**
   * A hash of the same cost as those of the accounts, to compare with where there is no account.
   * Left out: one of the default cost.
   */
  readonly decoyHash?: string | undefined;
}

/** The other two of libuv's four threads stay free for files and names. */
export const checksUnderWayMax = 2;

export function createPasswordChecker(options: PasswordCheckerOptions): CheckPassword {
  const decoyHash = options.decoyHash ?? defaultDecoyHash;
  const withPermit = createSemaphore(options.queueMax);
  return async (password, hash) => {
    const expected = getPasswordHash(hash ?? decoyHash);
    const isRight = await withPermit(() => verifyPassword(password, expected));
    return isRight && hash !== undefined;
  };
}

/** Made of random bytes that were thrown away. */
const defaultDecoyHash =
  'scrypt$16384$8$1$mGIJ5RuHfGs6khJHn9OnYw$nITIG69x1SVuL55H3a-t7A5KYu5MLnecTMnR0Evvx7A';

/** Runs at most `checksUnderWayMax` at a time, lets `queueMax` wait: first come, first served. */
function createSemaphore(queueMax: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let underWay = 0;

  return async (work) => {
    if (underWay < checksUnderWayMax) {
      underWay += 1;
    } else if (waiting.length < queueMax) {
      // A check that ends hands its permit to the next one, so that `underWay` does not change.
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    } else {
      throw new AppError('overloaded', 'Too many logins are being checked. Try again soon.', {
        retryAfterSeconds: 1,
      });
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) underWay -= 1;
      else next();
    }
  };
}

/** Accounts keep only hashes that were parsed when they were read: any other is a fault here. */
function getPasswordHash(text: string): PasswordHash {
  const hash = parsePasswordHash(text);
  if (hash === undefined) throw new Error('The stored password hash of an account is malformed.');
  return hash;
}

function derive(password: string, { salt, hash, ...parameters }: PasswordHash): Promise<Buffer> {
  const { cost, blockSize, parallelization } = parameters;
  // What scrypt itself needs (RFC 7914 §5), and one MiB to spare.
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
