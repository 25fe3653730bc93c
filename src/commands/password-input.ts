/**
 * Reads a new password. At a terminal it is asked for twice and not shown; otherwise it is the
 * first line of the input. It is never an argument, because other users can see arguments.
 */

import { createInterface } from 'node:readline/promises';
import { type Readable, Writable } from 'node:stream';
import { passwordBytesMax } from '../auth/password.ts';

/** Standard input, as the process has it. */
export interface PasswordInput extends Readable {
  readonly isTTY?: boolean;
}

export interface PasswordInputOptions {
  /** Writes a prompt to the terminal. */
  readonly write: (text: string) => void;
  /** Time limit for the input, in seconds. */
  readonly secondsMax: number;
}

/** Consumes the input. Throws an Error with a message of one line if there is no valid password. */
export async function readPassword(
  input: PasswordInput,
  { write, secondsMax }: PasswordInputOptions,
): Promise<string> {
  const timeout = new AbortController();
  const { signal } = timeout;
  const timer = setTimeout(() => timeout.abort(), secondsMax * 1000);
  try {
    return checkPassword(
      await (input.isTTY === true ? askTwice(input, write, signal) : readFirstLine(input, signal)),
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`No password came within ${secondsMax} seconds.`, { cause: error });
  } finally {
    clearTimeout(timer);
    input.destroy();
  }
}

async function askTwice(
  input: PasswordInput,
  write: PasswordInputOptions['write'],
  signal: AbortSignal,
): Promise<string> {
  // The line editor shows what is typed on its output.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = { terminal: true, historySize: 0, crlfDelay: Infinity, signal };
  const editor = createInterface({ input, output, ...terminal });
  const lines = editor[Symbol.asyncIterator]();
  const ask = async (prompt: string): Promise<string> => {
    write(prompt);
    const line: IteratorResult<string, unknown> = await lines.next();
    write('\n');
    // Ctrl+C, Ctrl+D, or the terminal is gone.
    if (line.done === true) throw new Error('No password was given: nothing has changed.');
    return line.value;
  };
  try {
    const password = await ask('Password: ');
    if ((await ask('Repeat the password: ')) === password) return password;
    throw new Error('The two passwords differ.');
  } finally {
    editor.close();
  }
}

async function readFirstLine(input: PasswordInput, signal: AbortSignal): Promise<string> {
  let bytes = Buffer.alloc(0);
  signal.addEventListener('abort', () => input.destroy(new Error('timeout')), { once: true });
  for await (const chunk of input) {
    bytes = Buffer.concat([bytes, chunk as Buffer]); // no encoding is set
    if (bytes.includes('\n') || bytes.length > passwordBytesMax + 2) break;
  }
  if (bytes.length === 0) throw new Error('There is no password on standard input.');
  const [line = ''] = bytes.toString().split('\n');
  return line.replace(/\r$/, '');
}

function checkPassword(password: string): string {
  if (password === '') throw new Error('A password must not be empty.');
  if (Buffer.byteLength(password) > passwordBytesMax) {
    throw new Error(`A password must have at most ${passwordBytesMax} bytes.`);
  }
  if (password.includes('\ufffd')) throw new Error('A password must be UTF-8.');
  // Control characters come from arrow keys or binary files, and cannot be typed at a login.
  if (/\p{Cc}/u.test(password)) throw new Error('A password must not have control characters.');
  return password;
}
