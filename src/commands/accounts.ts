/**
 * `accounts add | passwd | list | remove`: the accounts that a durable store keeps beside those
 * that are given at every start (R20). It starts no server and puts no other record into the store.
 */

import { parseArgs } from 'node:util';
import { decodePerson, loadAccounts, type Person } from '../auth/accounts.ts';
import { readPassword } from '../auth/password-input.ts';
import { hashPassword } from '../auth/password.ts';
import { type Config, readConfig } from '../config.ts';
import { formatLocalDateTime } from '../domain/local-date-time.ts';
import { toReason } from '../errors.ts';
import { openAccounts } from '../store/open.ts';
import type { KeptAccounts } from '../store/store.ts';
import { answer, type CommandContext, type ExitCode, UsageError } from './command.ts';

const usage = [
  'usage: node dist/server.js accounts add <username> --email <address> [--role <role>]...',
  '       node dist/server.js accounts passwd <username>',
  '       node dist/server.js accounts list',
  '       node dist/server.js accounts remove <username>',
  'A password has at least 12 characters and is not the name; --force takes any, and any address.',
  'A password is asked for at a terminal; else it is the first line of standard input.',
].join('\n');

export function runAccounts(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  return answer(context, async () => {
    if (args.includes('--help')) return usage;
    const command = parseCommand(args);
    if (typeof command === 'string') throw new UsageError(`${usage}\n\ninkwell: ${command}`);
    return run(command, context);
  });
}

interface AddCommand {
  readonly kind: 'add';
  readonly username: string;
  readonly email: string;
  readonly roles: readonly string[];
  /** Takes a weak password and an odd address. */
  readonly force: boolean;
}

type Command =
  | AddCommand
  | { readonly kind: 'passwd' | 'remove'; readonly username: string; readonly force: boolean }
  | { readonly kind: 'list' };

const options = {
  email: { type: 'string' },
  role: { type: 'string', multiple: true },
  force: { type: 'boolean', default: false },
} as const;

/** Or what is wrong with the arguments. */
function parseCommand(args: readonly string[]): Command | string {
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // An unknown option, or one without its value: the first sentence names it.
    return `${toReason(error).split(/\. |\n/)[0] ?? ''}.`;
  }
  const { email, role: roles, force } = parsed.values;
  const [kind, username, other] = parsed.positionals;
  if (kind === undefined) return 'A command is missing.';
  if (kind !== 'add' && kind !== 'passwd' && kind !== 'list' && kind !== 'remove') {
    return `There is no command ${quote(kind)}.`;
  }
  const extra = kind === 'list' ? username : other;
  // It may be a password: it is not repeated.
  if (extra !== undefined) return `${kind} takes fewer arguments.`;
  if (kind !== 'add' && (email !== undefined || roles !== undefined)) {
    return `${kind} takes no --email and no --role.`;
  }
  if (kind === 'list') return { kind };
  if (username === undefined) return `${kind} needs a username.`;
  if (kind !== 'add') return { kind, username, force };
  if (email === undefined) return 'add needs --email.';
  return { kind, username, email, roles: roles ?? [], force };
}

/** What to say when it is done, in lines. */
async function run(command: Command, context: CommandContext): Promise<string> {
  const config = readConfig(context.environment);
  const person = command.kind === 'add' ? await decodeNew(command, config) : undefined;
  const opened = await openAccounts(config.storeUrl, {
    now: () => formatLocalDateTime(context.now()),
    timeoutSeconds: config.storeTimeoutSeconds,
  });
  const { accounts } = opened;
  try {
    if (command.kind === 'list') return await list(accounts);
    const ask = (): Promise<string> => askFor(command, context);
    if (person !== undefined) return await add(person, accounts, ask);
    if (command.kind === 'passwd') return await setPassword(command.username, accounts, ask);
    if (!(await accounts.remove(command.username))) throw unknown(command.username);
    return `Removed ${quote(command.username)}.`;
  } finally {
    await opened.close();
  }
}

/** Before anything is opened or asked for. A given account would hide one of the same name. */
async function decodeNew(command: AddCommand, config: Config): Promise<Person> {
  const person = decodePerson({ ...command });
  if (typeof person === 'string') throw new Error(`${person}.`);
  if (!command.force && !/^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(command.email)) {
    throw new Error(`${quote(command.email)} is no email address; --force takes it.`);
  }
  const { username } = person;
  if (!(await loadAccounts(config)).some((account) => account.username === username)) return person;
  const source = config.usersFile === '' ? 'a demo account' : 'an account of USERS_FILE';
  throw new Error(`${quote(username)} is ${source} already.`);
}

async function add(
  person: Person,
  accounts: KeptAccounts,
  ask: () => Promise<string>,
): Promise<string> {
  const { username } = person;
  // Checked before a password is asked for, and once more by `add`.
  if ((await accounts.find(username)) !== undefined) throw taken(username);
  const passwordHash = await hashPassword(await ask());
  if (!(await accounts.add({ ...person, passwordHash }))) throw taken(username);
  return `Added ${quote(username)}.`;
}

async function setPassword(
  username: string,
  accounts: KeptAccounts,
  ask: () => Promise<string>,
): Promise<string> {
  if ((await accounts.find(username)) === undefined) throw unknown(username);
  const hash = await hashPassword(await ask());
  if (!(await accounts.setPasswordHash(username, hash))) throw unknown(username);
  return `Changed the password of ${quote(username)}.`;
}

/** One line each: username, address and roles, between tabs. None of them holds a tab. */
async function list(accounts: KeptAccounts): Promise<string> {
  const rows = await accounts.list();
  return rows
    .map(({ username, email, roles }) => [username, email, roles.join(',')].join('\t'))
    .join('\n');
}

/** A person who looks up a password gets this long. */
const passwordSecondsMax = 300;

const passwordLengthMin = 12;

async function askFor(
  { username, force }: Pick<AddCommand, 'username' | 'force'>,
  { input, errors }: CommandContext,
): Promise<string> {
  const say = (text: string): void => void errors.write(text);
  const password = await readPassword(input, { say, secondsMax: passwordSecondsMax });
  if (force) return password;
  if (password.length < passwordLengthMin) {
    throw new Error(
      `A password needs ${passwordLengthMin} characters; --force takes a shorter one.`,
    );
  }
  if (password.toLowerCase() === username.toLowerCase()) {
    throw new Error('The password is the name; --force takes it.');
  }
  return password;
}

function taken(username: string): Error {
  return new Error(`There is an account ${quote(username)} already.`);
}

function unknown(username: string): Error {
  return new Error(`The store keeps no account ${quote(username)}.`);
}

function quote(text: string): string {
  return JSON.stringify(text);
}
