/**
 * Reads a new password. At a terminal it is asked for twice and not shown; otherwise it is the
 * first line of the input. It is never an argument, because other users can see arguments.
 */

import { createInterface } from 'node:readline/promises';
import { type Readable, Writable } from 'node:stream';
import { passwordBytesMax } from '../auth/password.ts';

/** Limit for the input: the line editor gathers a line without one. */
const inputBytesMax = 16_384;

/** Standard input, as the process has it. */
export interface PasswordInput extends Readable {
  readonly isTTY?: boolean;
}

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
