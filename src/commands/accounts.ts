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
import { openAccounts } from '../store/open.ts';
import type { KeptAccounts } from '../store/store.ts';
import { answer, type CommandContext, type ExitCode, UsageError } from './command.ts';

const usage = [
  'usage: node dist/server.js accounts add <username> --email <address> [--role <role>]...',
  '       node dist/server.js accounts passwd <username>',
  '       node dist/server.js accounts list',
  '       node dist/server.js accounts remove <username>',
  'A password is asked for at a terminal; else it is the first line of standard input.',
].join('\n');

export function runAccounts(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  return answer(context, async () => {
    const command = parseCommand(args);
    if (command === undefined) throw new UsageError(usage);
    return run(command, context);
  });
}

interface AddCommand {
  readonly kind: 'add';
  readonly username: string;
  readonly email: string;
  readonly roles: readonly string[];
}

type Command =
  | AddCommand
  | { readonly kind: 'passwd' | 'remove'; readonly username: string }
  | { readonly kind: 'list' };

/** Undefined for arguments that make no command. */
function parseCommand(args: readonly string[]): Command | undefined {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      options: { email: { type: 'string' }, role: { type: 'string', multiple: true } },
      allowPositionals: true,
    });
  } catch {
    return undefined; // an unknown option, or one without its value
  }
  const { email, role: roles } = parsed.values;
  const [kind, username, ...others] = parsed.positionals;
  if (others.length > 0) return undefined;
  if (kind === 'add' && username !== undefined && email !== undefined) {
    return { kind, username, email, roles: roles ?? [] };
  }
  if (email !== undefined || roles !== undefined) return undefined;
  if (kind === 'list') return username === undefined ? { kind } : undefined;
  if (kind !== 'passwd' && kind !== 'remove') return undefined;
  return username === undefined ? undefined : { kind, username };
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
    if (person !== undefined) return await add(person, accounts, context);
    if (command.kind === 'passwd') return await setPassword(command.username, accounts, context);
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
  const { username } = person;
  if (!(await loadAccounts(config)).some((account) => account.username === username)) return person;
  const source = config.usersFile === '' ? 'a demo account' : 'an account of USERS_FILE';
  throw new Error(`${quote(username)} is ${source} already.`);
}

async function add(
  person: Person,
  accounts: KeptAccounts,
  context: CommandContext,
): Promise<string> {
  const { username } = person;
  // Checked before a password is asked for, and once more by `add`.
  if ((await accounts.find(username)) !== undefined) throw taken(username);
  const passwordHash = await hashPassword(await ask(context));
  if (!(await accounts.add({ ...person, passwordHash }))) throw taken(username);
  return `Added ${quote(username)}.`;
}

async function setPassword(
  username: string,
  accounts: KeptAccounts,
  context: CommandContext,
): Promise<string> {
  if ((await accounts.find(username)) === undefined) throw unknown(username);
  const hash = await hashPassword(await ask(context));
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

function ask({ input, errors }: CommandContext): Promise<string> {
  const say = (text: string): void => void errors.write(text);
  return readPassword(input, { say, secondsMax: passwordSecondsMax });
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
