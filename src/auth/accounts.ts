/**
 * The accounts that can log in (R20): those of USERS_FILE, or the demo accounts. They are read
 * once, at the start. Accounts kept in a durable store (commands/accounts.ts) have the same limits.
 */

import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { type Config, ConfigError } from '../config.ts';
import { deriveId } from '../domain/ids.ts';
import { codeOf } from '../errors.ts';
import { isObject } from '../http/json.ts';
import type { Account } from '../store/model.ts';
import { parsePasswordHash } from './password.ts';

/** USERS_FILE is read into memory. This size is enough for some thousands of accounts. */
export const usersFileBytesMax = 1024 * 1024;

/** The roles that mean something (R36). USERS_FILE may have others, which mean nothing. */
export const knownRoles: readonly string[] = ['USER', 'ADMIN'];

/** Characters of a username. */
export const usernameLengthMax = 256;

type AccountSettings = Pick<Config, 'usersFile' | 'environment' | 'demoData'>;

/**
 * Reads the accounts of this run. Throws one ConfigError that names USERS_FILE and its faults, and
 * never repeats a password hash.
 */
export async function loadAccounts(config: AccountSettings): Promise<readonly Account[]> {
  const { usersFile, environment, demoData } = config;
  if (usersFile === '') return environment === 'production' || !demoData ? [] : demoAccounts;
  let bytes: Buffer;
  try {
    // Bounded, because the path may name a device or a pipe that never ends.
    bytes = await buffer(createReadStream(usersFile, { end: usersFileBytesMax }));
  } catch (error) {
    // Only the system's code (ENOENT, EACCES) is shown: the rest of the message repeats the path.
    const code = codeOf(error) ?? 'unknown fault';
    throw new ConfigError(`USERS_FILE ${JSON.stringify(usersFile)} cannot be read: ${code}.`);
  }
  if (bytes.length > usersFileBytesMax) {
    throw new ConfigError(`USERS_FILE must be at most ${usersFileBytesMax} bytes.`);
  }
  return parseUsersFile(bytes);
}

/** Hashes of the word "password", precomputed so that the start does not run scrypt. */
const demoAccounts: readonly Account[] = [
  {
    id: '019b8d5e-9c00-7000-8000-000000000401',
    username: 'user',
    email: 'user@example.com',
    roles: ['USER'],
    passwordHash:
      'scrypt$16384$8$1$kObE-defhTSIEuBa_XFeCA$WPHEQ5vlhkX7vHLO5GkFIKPMAxpk8oWzNZuxEIKB6Es',
  },
  {
    id: '019b8d5e-9c00-7000-8000-000000000402',
    username: 'admin',
    email: 'admin@example.com',
    roles: ['USER', 'ADMIN'],
    passwordHash:
      'scrypt$16384$8$1$m-_IKgevzGopK4LqtJcC0Q$8fe1hsk4kNNz9I3tjSthCkGo5JEM4lOAJn4ESdGf1lE',
  },
];

function parseUsersFile(bytes: Buffer): readonly Account[] {
  let entries: unknown;
  try {
    entries = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new ConfigError('USERS_FILE must be JSON in UTF-8.');
  }
  if (!Array.isArray(entries)) throw new ConfigError('USERS_FILE must hold a JSON array.');
  const faults: string[] = [];
  const accounts = new Map<string, Account>();
  for (const [index, entry] of entries.entries()) {
    const account = decodeEntry(entry);
    if (typeof account === 'string') faults.push(`entry ${index}: ${account}`);
    else if (accounts.has(account.username)) faults.push(`entry ${index}: username is taken`);
    else accounts.set(account.username, account);
  }
  if (faults.length === 0) return [...accounts.values()];
  const rest = faults.length - faultsListedMax;
  const listed = faults.slice(0, faultsListedMax).join('; ');
  throw new ConfigError(`USERS_FILE: ${listed}${rest > 0 ? `; and ${rest} more` : ''}.`);
}

/** The first faults are enough to correct a file; the others are only counted. */
const faultsListedMax = 10;

/** Returns the account, or a description of what is wrong with the entry. */
function decodeEntry(entry: unknown): Account | string {
  if (!isObject(entry)) return 'must be an object';
  const { passwordHash, ...values } = entry;
  const person = decodePerson(values);
  if (typeof person === 'string') return person;
  if (typeof passwordHash !== 'string' || parsePasswordHash(passwordHash) === undefined) {
    return 'passwordHash must be scrypt$N$r$p$salt$hash with N from 16384 to 131072';
  }
  return { ...person, passwordHash };
}

/** An account without its password hash. */
export type Person = Omit<Account, 'passwordHash'>;

/** Returns the person with these values, or a description of what is wrong with them. */
export function decodePerson(values: Readonly<Record<string, unknown>>): Person | string {
  const { username, email, roles } = values;
  if (!isLine(username, usernameLengthMax)) return 'username must be text of 1 to 256 characters';
  // R21: two names must not look alike.
  if (username !== username.trim().normalize('NFC') || /\p{Cf}/u.test(username)) {
    return 'username must be composed (NFC), without white space around it or format characters';
  }
  if (!isLine(email, 320)) return 'email must be text of 1 to 320 characters';
  if (!isRoles(roles)) return 'roles must be an array of texts, 1,000 bytes in all';
  return { id: toAccountId(username), username, email, roles };
}

/** These limits on names, addresses and roles keep a token under 4,096 characters. */
function isLine(value: unknown, lengthMax: number): value is string {
  if (typeof value !== 'string' || value.length > lengthMax) return false;
  return value.trim() !== '' && value.isWellFormed() && !/\p{Cc}/u.test(value);
}

function isRoles(value: unknown): value is readonly string[] {
  if (!Array.isArray(value) || !value.every((role) => isLine(role, 256))) return false;
  return Buffer.byteLength(JSON.stringify(value)) <= 1_000;
}

/**
 * Derives an account's id from its username, so that the id is the same on every start and every
 * machine, and posts keep their author. Choice: one fixed time.
 */
export function toAccountId(username: string): string {
  return deriveId(idMoment, `account ${username}`);
}

/** 2024-05-01T00:00:00Z in milliseconds, as in the ids of the demo accounts. */
const idMoment = 0x018f_3173_7000;
