/**
 * `accounts add | change | passwd | list | remove`: manages the accounts that a durable store keeps
 * in addition to those given at every start (R20). It starts no server and writes no other record.
 */

import { parseArgs } from 'node:util';
import { decodePerson, loadAccounts, type Person } from '../auth/accounts.ts';
import { readPassword } from '../auth/password-input.ts';
import { hashPassword } from '../auth/password.ts';
import { type Config, readConfig } from '../config.ts';
import { createLocalClock } from '../domain/local-date-time.ts';
import { toReason } from '../errors.ts';
import { openAccounts } from '../store/open.ts';
import type { AccountChanges, AccountRange, KeptAccounts } from '../store/store.ts';
import { type CommandContext, type RunCommand, UsageError } from './command.ts';

const usage = [
  'usage: node dist/server.js accounts add <username> --email <address> [--role <role>]...',
  '       node dist/server.js accounts change <username> [--email <address>]',
  '                                            [--role <role>]... | [--no-roles]',
  '       node dist/server.js accounts passwd <username>',
  '       node dist/server.js accounts list [--limit <count>] [--after <username>]',
  '       node dist/server.js accounts remove <username>',
  'A password has at least 12 characters and is not the name; --force takes any, and any address.',
  'A password is asked for at a terminal; else it is the first line of standard input.',
  'The roles that are given to change replace those that the account has.',
  'Where list has printed as many accounts as its limit, --after the last one lists the next.',
].join('\n');

export const runAccounts: RunCommand = async (args, context) => {
  if (args.includes('--help')) return usage;
  const command = parseCommand(args);
  if (typeof command === 'string') throw new UsageError(`${usage}\n\ninkwell: ${command}`);
  return run(command, context);
};

type Kind = keyof typeof optionsOf;

interface Command extends AccountRange, AccountChanges {
  readonly kind: Kind;
  /** Empty for the command `list`. */
  readonly username: string;
  /** Accepts a weak password and an unusual e-mail address. */
  readonly force: boolean;
}

const options = {
  email: { type: 'string' },
  role: { type: 'string', multiple: true },
  'no-roles': { type: 'boolean' },
  after: { type: 'string' },
  limit: { type: 'string' },
  force: { type: 'boolean' },
} as const;

/** The options of each command. */
const optionsOf = {
  add: ['email', 'role', 'force'],
  change: ['email', 'role', 'no-roles', 'force'],
  passwd: ['force'],
  list: ['limit', 'after'],
  remove: [],
} as const satisfies Readonly<Record<string, readonly (keyof typeof options)[]>>;

/** Returns the command, or a description of what is wrong with the arguments. */
function parseCommand(args: readonly string[]): Command | string {
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // An unknown option, or one without a value. The first sentence of Node's message names it.
    return `${toReason(error).split(/\.\s/)[0] ?? ''}.`;
  }
  const { values, positionals } = parsed;
  const [kind, username = ''] = positionals;
  if (kind === undefined) return 'A command is missing.';
  if (!isKind(kind)) return `There is no command ${quote(kind)}.`;
  const known: readonly string[] = optionsOf[kind];
  const foreign = Object.keys(values).find((name) => !known.includes(name));
  if (foreign !== undefined) return `${kind} takes no --${foreign}.`;
  // An extra argument may be a password, so it is not repeated.
  if (positionals.length > (kind === 'list' ? 1 : 2)) return `${kind} takes fewer arguments.`;
  if (kind !== 'list' && username === '') return `${kind} needs a username.`;
  return decodeOptions({ kind, username, force: values.force ?? false }, values);
}

type Options = ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];

function decodeOptions(command: Command, given: Options): Command | string {
  const { email, role, after, ...rest } = given;
  const { kind } = command;
  const hasNoRoles = rest['no-roles'] === true;
  if (kind === 'add' && email === undefined) return 'add needs --email.';
  if (hasNoRoles && role !== undefined) return 'change takes --role or --no-roles.';
  const roles = hasNoRoles ? [] : role;
  if (kind === 'change' && email === undefined && roles === undefined) {
    return 'change needs --email, --role or --no-roles.';
  }
  if (rest.limit !== undefined && !/^[1-9]\d{0,8}$/.test(rest.limit)) {
    return '--limit must be a whole number from 1.';
  }
  const limit = rest.limit === undefined ? undefined : Number(rest.limit);
  return { ...command, email, roles, after, limit };
}

function isKind(text: string): text is Kind {
  return Object.hasOwn(optionsOf, text);
}

/** Resolves with the text to print on success. */
async function run(command: Command, context: CommandContext): Promise<string> {
  const config = readConfig(context.environment);
  const { kind, username } = command;
  // The arguments are checked before the store is opened or a password is asked for.
  const person = kind === 'add' || kind === 'change' ? await decode(command, config) : undefined;
  const opened = await openAccounts(config.storeUrl, {
    now: createLocalClock(context.now),
    log: () => undefined,
    startSeconds: 1,
    timeoutSeconds: config.storeTimeoutSeconds,
  });
  const { accounts } = opened;
  try {
    if (kind === 'list') return await list(accounts, command);
    const fault =
      kind === 'add'
        ? `There is an account ${quote(username)} already.`
        : `The store keeps no account ${quote(username)}.`;
    // Checked before a password is asked for; the change itself checks it again.
    const isKept = (await accounts.find(username)) !== undefined;
    if (isKept === (kind === 'add')) throw new Error(fault);
    const needsPassword = kind === 'add' || kind === 'passwd';
    const passwordHash = needsPassword
      ? await hashPassword(await askFor(command, context))
      : undefined;
    let isDone: boolean;
    if (kind === 'remove') isDone = await accounts.remove(username);
    else if (person === undefined || passwordHash === undefined) {
      isDone = await accounts.change(username, { ...command, passwordHash });
    } else isDone = await accounts.add({ ...person, passwordHash });
    if (!isDone) throw new Error(fault);
    context.log('info', 'account changed', { account: username, change: kind });
    return `${doneWords[kind]} ${quote(username)}.`;
  } finally {
    await opened.close();
  }
}

const doneWords = {
  add: 'Added',
  change: 'Changed',
  passwd: 'Changed the password of',
  remove: 'Removed',
} as const;

/**
 * Decodes the options of `add`, or checks those of `change`, which may omit values. Throws if an
 * account given at the start has the same name: it would hide this one.
 */
async function decode(command: Command, config: Config): Promise<Person> {
  const { username, email, roles = [], force } = command;
  const person = decodePerson({ username, email: email ?? '-', roles });
  if (typeof person === 'string') throw new Error(`${person}.`);
  if (email !== undefined && !force && !/^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(email)) {
    throw new Error(`${quote(email)} is no email address; --force takes it.`);
  }
  if (!(await loadAccounts(config)).some((account) => account.username === username)) return person;
  const source = config.usersFile === '' ? 'a demo account' : 'an account of USERS_FILE';
  throw new Error(`${quote(username)} is ${source} already.`);
}

/** One line each: username, e-mail address and roles, separated by tabs. No value has a tab. */
async function list(accounts: KeptAccounts, range: AccountRange): Promise<string> {
  const rows = await accounts.list(range);
  return rows
    .map(({ username, email, roles }) => [username, email, roles.join(',')].join('\t'))
    .join('\n');
}

/** Long enough to look up a password. */
const passwordSecondsMax = 300;

const passwordLengthMin = 12;

async function askFor({ username, force }: Command, context: CommandContext): Promise<string> {
  const { input, errors } = context;
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

function quote(text: string): string {
  return JSON.stringify(text);
}
