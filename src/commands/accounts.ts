/**
 * `accounts add | passwd | remove | list`: manages the accounts in the store. Those that are
 * configured (R20) exist beside them. It starts no server and writes no other record.
 */

import { parseArgs } from 'node:util';
import { decodePerson, loadAccounts, type Person } from '../auth/accounts.ts';
import { hashPassword } from '../auth/password.ts';
import { type Config, readConfig } from '../config.ts';
import { createLocalClock } from '../domain/scalars.ts';
import { toReason } from '../errors.ts';
import { openAccounts } from '../store/open.ts';
import type { StoredAccounts } from '../store/store.ts';
import { type CommandContext, type RunCommand, UsageError } from './command.ts';
import { readPassword } from './password-input.ts';

const usage = [
  'usage: node dist/server.js accounts add <username> --email <address> [--role <role>]...',
  '       node dist/server.js accounts passwd <username>',
  '       node dist/server.js accounts remove <username>',
  '       node dist/server.js accounts list',
  'The password is asked for at a terminal; otherwise it is the first line of standard input. It',
  'has at least 12 characters and differs from the username.',
].join('\n');

interface Arguments {
  readonly kind: 'add' | 'passwd' | 'remove' | 'list';
  /** Empty for `list`. */
  readonly username: string;
  readonly email: string | undefined;
  readonly roles: readonly string[];
}

export const runAccounts: RunCommand = async (args, context) => {
  if (args.includes('--help')) return usage;
  const { kind, username, ...given } = parseArguments(args);
  const config = readConfig(context.environment);
  // The arguments are checked before the store is opened or a password is asked for.
  const person = kind === 'add' ? await decodeNewPerson({ username, ...given }, config) : undefined;
  const opened = await openAccounts(config.storeUrl, {
    now: createLocalClock(context.now),
    log: () => undefined,
    startSeconds: 1,
    timeoutSeconds: config.storeTimeoutSeconds,
    mayCreate: kind === 'add',
  });
  const { accounts } = opened;
  try {
    if (kind === 'list') return await list(accounts);
    // Checked before a password is asked for; the change itself checks it again.
    const exists = (await accounts.find(username)) !== undefined;
    if (exists === (kind === 'add')) throw wrongUsername(kind, username);
    const isDone = await change(accounts, { kind, username, person }, context);
    if (!isDone) throw wrongUsername(kind, username);
    return `${doneWords[kind]} ${JSON.stringify(username)}.`;
  } finally {
    await opened.close();
  }
};

/** Throws a UsageError for arguments that are not a command. */
function parseArguments(args: readonly string[]): Arguments {
  const options = { email: { type: 'string' }, role: { type: 'string', multiple: true } } as const;
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // An unknown option, or one without a value. The first sentence of Node's message names it.
    throw wrongUsage(`${toReason(error).split(/\.\s/)[0] ?? ''}.`);
  }
  const { email, role: roles = [] } = parsed.values;
  const [kind = '', username = '', ...others] = parsed.positionals;
  if (kind !== 'add' && kind !== 'passwd' && kind !== 'remove' && kind !== 'list') {
    throw wrongUsage(`There is no command accounts ${JSON.stringify(kind)}.`);
  }
  // An extra argument may be a password, so it is not repeated.
  if (others.length > 0 || (kind === 'list' && username !== '')) {
    throw wrongUsage(`${kind} takes fewer arguments.`);
  }
  if (kind !== 'list' && username === '') throw wrongUsage(`${kind} needs a username.`);
  if (kind === 'add' && email === undefined) throw wrongUsage('add needs --email.');
  if (kind !== 'add' && (email !== undefined || roles.length > 0)) {
    throw wrongUsage(`${kind} takes no option.`);
  }
  return { kind, username, email, roles };
}

function wrongUsage(reason: string): UsageError {
  return new UsageError(`${usage}\n\ninkwell: ${reason}`);
}

const doneWords = { add: 'Added', passwd: 'Changed the password of', remove: 'Removed' } as const;

function wrongUsername(kind: Arguments['kind'], username: string): Error {
  const name = JSON.stringify(username);
  return new Error(
    kind === 'add' ? `An account ${name} already exists.` : `The store has no account ${name}.`,
  );
}

/** Throws if a configured account has the same name: it would hide this one. */
async function decodeNewPerson(
  values: Pick<Arguments, 'username' | 'email' | 'roles'>,
  config: Config,
): Promise<Person> {
  const person = decodePerson(values);
  if (typeof person === 'string') throw new Error(`${person}.`);
  if (!/^[^\s@]+@[^\s@]+$/.test(person.email)) {
    throw new Error(`${JSON.stringify(person.email)} is not an email address.`);
  }
  const { username } = person;
  if (!(await loadAccounts(config)).some((account) => account.username === username)) return person;
  const source = config.usersFile === '' ? 'a demo account' : 'an account of USERS_FILE';
  throw new Error(`${JSON.stringify(username)} is ${source}.`);
}

async function change(
  accounts: StoredAccounts,
  { kind, username, person }: Pick<Arguments, 'kind' | 'username'> & { person: Person | undefined },
  context: CommandContext,
): Promise<boolean> {
  if (kind === 'remove') return accounts.remove(username);
  const passwordHash = await hashPassword(await askPassword(username, context));
  return person === undefined
    ? accounts.changePassword(username, passwordHash)
    : accounts.add({ ...person, passwordHash });
}

/** One line each: username, e-mail address and roles, separated by tabs. No value has a tab. */
async function list(accounts: StoredAccounts): Promise<string> {
  const rows = await accounts.list();
  return rows
    .map(({ username, email, roles }) => [username, email, roles.join(',')].join('\t'))
    .join('\n');
}

const passwordLengthMin = 12;

async function askPassword(username: string, { input, errors }: CommandContext): Promise<string> {
  const password = await readPassword(input, (text) => void errors.write(text));
  if (password.length < passwordLengthMin) {
    throw new Error(`A password must have at least ${passwordLengthMin} characters.`);
  }
  if (password.toLowerCase() === username.toLowerCase()) {
    throw new Error('The password must differ from the username.');
  }
  return password;
}
