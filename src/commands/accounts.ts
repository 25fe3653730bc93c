/**
 * `accounts add | change | passwd | remove | list`: manages the accounts in the store (R51). Those
 * that are configured (R20) exist beside them. It starts no server. A password is asked for twice
 * at a terminal, and not shown; otherwise it is the first line of the input. It is never an
 * argument, because other users can see arguments.
 */

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { decodePerson, knownRoles, loadAccounts, type Person } from '../auth/accounts.ts';
import { faultOfPassword, faultOfText, hashPassword, passwordBytesMax } from '../auth/password.ts';
import { type Config, readConfig } from '../config.ts';
import { createLocalClock } from '../domain/local-date-time.ts';
import { toReason } from '../errors.ts';
import { openAccounts } from '../store/open.ts';
import type { Legacy, StoredAccounts } from '../store/store.ts';
import { type CommandContext, type PasswordInput, UsageError } from './command.ts';

const usage = [
  'usage: node dist/server.js accounts add <username> --email <address> [--role <role>]...',
  '       node dist/server.js accounts change <username> [--email <address>] [--role <role>]...',
  '       node dist/server.js accounts passwd <username>',
  '       node dist/server.js accounts remove <username> [--erase] [--posts-to <username>]',
  '       node dist/server.js accounts list',
  'The password is asked for at a terminal; otherwise it is the first line of standard input. It',
  'has at least 12 characters and differs from the username.',
].join('\n');

const options = {
  email: { type: 'string' },
  role: { type: 'string', multiple: true },
  erase: { type: 'boolean' },
  'posts-to': { type: 'string' },
} as const;
type Option = keyof typeof options;

/** The commands, and the options of each. */
const kinds = {
  add: ['email', 'role'],
  change: ['email', 'role'],
  passwd: [],
  remove: ['erase', 'posts-to'],
  list: [],
} as const satisfies Readonly<Record<string, readonly Option[]>>;
type Kind = keyof typeof kinds;

/** `username` is empty for `list`. */
type Arguments = ReturnType<typeof parseArguments>;

export async function runAccounts(args: readonly string[], context: CommandContext) {
  if (args.includes('--help')) return usage;
  const given = parseArguments(args);
  const { kind, username } = given;
  const config = readConfig(context.environment);
  // The arguments are checked before the store is opened or a password is asked for.
  const person = kind === 'add' ? await decodeNewPerson(given, config) : undefined;
  const change = kind === 'change' ? decodeChange(given) : {};
  const opened = await openAccounts(config.storeUrl, {
    now: createLocalClock(context.now),
    log: () => undefined,
    startSeconds: 1,
    timeoutSeconds: config.storeTimeoutSeconds,
    mayCreate: kind === 'add',
  });
  const { accounts } = opened;
  try {
    if (kind === 'list') return toLines(await accounts.list());
    const refuse = async (): Promise<never> => {
      const source = await findSource(username, config);
      throw wrongUsername(kind, username, source);
    };
    // Checked before a password is asked for; the change itself checks it again.
    const exists = (await accounts.find(username)) !== undefined;
    if (exists === (kind === 'add')) await refuse();
    const hash = async () => hashPassword(await askPassword(username, context));
    const acts = {
      add: async () => person && accounts.add({ ...person, passwordHash: await hash() }),
      change: () => accounts.change(username, change),
      passwd: async () => accounts.changePassword(username, await hash()),
      remove: async () => accounts.remove(username, await findLegacy(given, config, accounts)),
    };
    if ((await acts[kind]()) !== true) await refuse();
    const done = given.erase ? 'Erased' : doneWords[kind];
    return `${done} ${JSON.stringify(username)}.`;
  } finally {
    await opened.close();
  }
}

/** Throws a UsageError for arguments that are not a command. */
function parseArguments(args: readonly string[]) {
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // An unknown option, or one without a value. The first sentence of Node's message names it.
    throw wrongUsage(`${toReason(error).split(/\.\s/)[0] ?? ''}.`);
  }
  const { email, role: roles = [], erase = false, 'posts-to': postsTo } = parsed.values;
  const [name = '', username = '', ...others] = parsed.positionals;
  if (!isKind(name)) throw wrongUsage(`There is no command accounts ${JSON.stringify(name)}.`);
  // An extra argument may be a password, so it is not repeated.
  if (others.length > 0 || (name === 'list' && username !== '')) {
    throw wrongUsage(`${name} takes fewer arguments.`);
  }
  if (name !== 'list' && username === '') throw wrongUsage(`${name} needs a username.`);
  const own: readonly string[] = kinds[name];
  const wrong = Object.keys(parsed.values).find((option) => !own.includes(option));
  if (wrong !== undefined) throw wrongUsage(`${name} takes no --${wrong}.`);
  if (name === 'add' && email === undefined) throw wrongUsage('add needs --email.');
  if (name === 'change' && email === undefined && roles.length === 0) {
    throw wrongUsage('change needs --email or --role.');
  }
  if (postsTo === username) throw wrongUsage('--posts-to names another account.');
  return { kind: name, username, email, roles, erase, postsTo };
}

function isKind(name: string): name is Kind {
  return Object.hasOwn(kinds, name);
}

function wrongUsage(reason: string): UsageError {
  return new UsageError(`${usage}\n\ninkwell: ${reason}`);
}

const doneWords = {
  add: 'Added',
  change: 'Changed',
  passwd: 'Changed the password of',
  remove: 'Removed',
} as const;

function wrongUsername(kind: Kind, username: string, source: string | undefined): Error {
  const name = JSON.stringify(username);
  if (kind === 'add') return new Error(`An account ${name} already exists.`);
  return new Error(`The store has no account ${name}${source ? `, which is ${source}` : ''}.`);
}

/** Where the account is configured, if it is (R20). */
async function findSource(username: string, config: Config): Promise<string | undefined> {
  const configured = await loadAccounts(config);
  if (!configured.some((account) => account.username === username)) return undefined;
  return config.usersFile === '' ? 'a demo account' : 'an account of USERS_FILE';
}

/** Throws if a configured account has the same name: it would hide this one. */
async function decodeNewPerson(given: Arguments, config: Config): Promise<Person> {
  const { username, email = '', roles } = given;
  const person = decodePerson({ username, email, roles });
  if (typeof person === 'string') throw new Error(`${person}.`);
  checkChange({ email, roles });
  const source = await findSource(username, config);
  if (source === undefined) return person;
  throw new Error(`${JSON.stringify(username)} is ${source}.`);
}

/** Members that are not given stay. */
function decodeChange({ username, email, roles }: Arguments) {
  const person = decodePerson({ username, email: email ?? 'a@b', roles });
  if (typeof person === 'string') throw new Error(`${person}.`);
  const change = { ...(email !== undefined && { email }), ...(roles.length > 0 && { roles }) };
  checkChange(change);
  return change;
}

function checkChange({ email, roles = [] }: Partial<Pick<Person, 'email' | 'roles'>>): void {
  if (email !== undefined && !/^[^\s@]+@[^\s@]+$/.test(email)) {
    throw new Error(`${JSON.stringify(email)} is not an email address.`);
  }
  const unknown = roles.find((role) => !knownRoles.includes(role));
  if (unknown === undefined) return;
  throw new Error(`There is no role ${JSON.stringify(unknown)}, only ${knownRoles.join(', ')}.`);
}

/** What becomes of what a removed account has left. */
async function findLegacy(
  { postsTo: name, erase: isErased }: Arguments,
  config: Config,
  accounts: Pick<StoredAccounts, 'find'>,
): Promise<Legacy> {
  if (name === undefined) return { isErased };
  const configured = (await loadAccounts(config)).find(({ username }) => username === name);
  const heir = configured ?? (await accounts.find(name));
  if (heir === undefined) throw new Error(`There is no account ${JSON.stringify(name)}.`);
  return { isErased, postsTo: heir.id };
}

/** One line each: username, e-mail address and roles, separated by tabs. No value has a tab. */
function toLines(people: readonly Person[]): string {
  return people
    .map((each) => `${each.username}\t${each.email}\t${each.roles.join(',')}`)
    .join('\n');
}

async function askPassword(username: string, { input, errors }: CommandContext): Promise<string> {
  const password = await readPassword(input, (text) => void errors.write(text));
  const fault = faultOfPassword(password, username);
  if (fault !== undefined) throw new Error(`A password ${fault}.`);
  return password;
}

/** Limit for the input: the line editor buffers a line of any length. */
const inputBytesMax = 16_384;

/**
 * Consumes the input; `write` writes a prompt to the terminal. Throws an Error with a message of
 * one line if there is no valid password. Five minutes are enough to look one up.
 */
export async function readPassword(
  input: PasswordInput,
  write: (text: string) => void,
  secondsMax = 300,
): Promise<string> {
  const isTerminal = input.isTTY === true;
  // The line editor shows what is typed on its output.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = { terminal: isTerminal, historySize: 0, crlfDelay: Infinity };
  const editor = createInterface({ input, output, ...terminal });
  const timer = setTimeout(() => editor.close(), secondsMax * 1000);
  let bytes = 0;
  input.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > inputBytesMax) editor.close();
  });
  const lines = editor[Symbol.asyncIterator]();
  const ask = async (prompt: string): Promise<string> => {
    if (isTerminal) write(prompt);
    const line: IteratorResult<string, unknown> = await lines.next();
    if (isTerminal) write('\n');
    if (line.done === true && bytes > inputBytesMax) throw tooLong();
    // Ctrl+C, Ctrl+D, the end of the input, or no line in time.
    if (line.done === true) throw new Error('No password was given: nothing has changed.');
    return line.value;
  };
  try {
    const password = await ask('Password: ');
    if (isTerminal && (await ask('Repeat the password: ')) !== password) {
      throw new Error('The two passwords differ.');
    }
    // Windows and some editors begin a piped text with a byte order mark.
    return checkPassword(isTerminal ? password : password.replace(/^\u{feff}/u, ''));
  } finally {
    clearTimeout(timer);
    editor.close();
    input.destroy();
  }
}

function checkPassword(password: string): string {
  if (password === '') throw new Error('A password must not be empty.');
  const fault = faultOfText(password);
  if (fault !== undefined) throw new Error(`A password ${fault}.`);
  if (password.includes('\ufffd')) throw new Error('A password must be UTF-8.');
  // R21, RFC 8265 §4.2.2
  return password.normalize('NFC');
}

function tooLong(): Error {
  return new Error(`A password must have at most ${passwordBytesMax} bytes.`);
}
