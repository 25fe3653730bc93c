/**
 * `accounts add | passwd | remove | list`: manages the accounts in the store. Those that are
 * configured (R20) exist beside them. It starts no server and writes no other record. A password is
 * asked for twice at a terminal, and not shown; otherwise it is the first line of the input. It is
 * never an argument, because other users can see arguments.
 */

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { decodePerson, loadAccounts, type Person } from '../auth/accounts.ts';
import { hashPassword, passwordBytesMax } from '../auth/password.ts';
import { type Config, readConfig } from '../config.ts';
import { createLocalClock } from '../domain/local-date-time.ts';
import { toReason } from '../errors.ts';
import { openAccounts } from '../store/open.ts';
import { type CommandContext, type PasswordInput, UsageError } from './command.ts';

const usage = [
  'usage: node dist/server.js accounts add <username> --email <address> [--role <role>]...',
  '       node dist/server.js accounts passwd <username>',
  '       node dist/server.js accounts remove <username>',
  '       node dist/server.js accounts list',
  'The password is asked for at a terminal; otherwise it is the first line of standard input. It',
  'has at least 12 characters and differs from the username.',
].join('\n');

const kinds = ['add', 'passwd', 'remove', 'list'] as const;

/** `username` is empty for `list`. */
type Arguments = ReturnType<typeof parseArguments>;

export async function runAccounts(args: readonly string[], context: CommandContext) {
  if (args.includes('--help')) return usage;
  const given = parseArguments(args);
  const { kind, username } = given;
  const config = readConfig(context.environment);
  // The arguments are checked before the store is opened or a password is asked for.
  const person = kind === 'add' ? await decodeNewPerson(given, config) : undefined;
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
    // Checked before a password is asked for; the change itself checks it again.
    const exists = (await accounts.find(username)) !== undefined;
    if (exists === (kind === 'add')) throw wrongUsername(kind, username);
    let isDone: boolean;
    if (kind === 'remove') isDone = await accounts.remove(username);
    else {
      const passwordHash = await hashPassword(await askPassword(username, context));
      isDone = await (person === undefined
        ? accounts.changePassword(username, passwordHash)
        : accounts.add({ ...person, passwordHash }));
    }
    if (!isDone) throw wrongUsername(kind, username);
    return `${doneWords[kind]} ${JSON.stringify(username)}.`;
  } finally {
    await opened.close();
  }
}

/** Throws a UsageError for arguments that are not a command. */
function parseArguments(args: readonly string[]) {
  const options = { email: { type: 'string' }, role: { type: 'string', multiple: true } } as const;
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // An unknown option, or one without a value. The first sentence of Node's message names it.
    throw wrongUsage(`${toReason(error).split(/\.\s/)[0] ?? ''}.`);
  }
  const { email, role: roles = [] } = parsed.values;
  const [name = '', username = '', ...others] = parsed.positionals;
  const kind = kinds.find((each) => each === name);
  if (kind === undefined) throw wrongUsage(`There is no command accounts ${JSON.stringify(name)}.`);
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
async function decodeNewPerson(given: Arguments, config: Config): Promise<Person> {
  const person = decodePerson(given);
  if (typeof person === 'string') throw new Error(`${person}.`);
  if (!/^[^\s@]+@[^\s@]+$/.test(person.email)) {
    throw new Error(`${JSON.stringify(person.email)} is not an email address.`);
  }
  const { username } = person;
  if (!(await loadAccounts(config)).some((account) => account.username === username)) return person;
  const source = config.usersFile === '' ? 'a demo account' : 'an account of USERS_FILE';
  throw new Error(`${JSON.stringify(username)} is ${source}.`);
}

/** One line each: username, e-mail address and roles, separated by tabs. No value has a tab. */
function toLines(people: readonly Person[]): string {
  return people
    .map((each) => `${each.username}\t${each.email}\t${each.roles.join(',')}`)
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
    return checkPassword(password);
  } finally {
    clearTimeout(timer);
    editor.close();
    input.destroy();
  }
}

function checkPassword(password: string): string {
  if (password === '') throw new Error('A password must not be empty.');
  if (Buffer.byteLength(password) > passwordBytesMax) throw tooLong();
  if (password.includes('\ufffd')) throw new Error('A password must be UTF-8.');
  // Control characters come from arrow keys or binary files, and cannot be typed at a login.
  if (/\p{Cc}/u.test(password)) throw new Error('A password must not have control characters.');
  return password;
}

function tooLong(): Error {
  return new Error(`A password must have at most ${passwordBytesMax} bytes.`);
}
