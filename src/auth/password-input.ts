/**
 * Reads a new password. At a terminal it is asked for twice and not shown; otherwise it is the
 * first line of the input. It is never an argument, because other users can see arguments.
 */

import type { Readable } from 'node:stream';
import { passwordBytesMax } from './password.ts';

/** Standard input, as the process has it. */
export interface PasswordInput extends Readable {
  readonly isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
}

export interface PasswordInputOptions {
  /** Writes a prompt to the terminal. */
  readonly say: (text: string) => void;
  /** Time limit for the input, in seconds. */
  readonly secondsMax: number;
}

/** Consumes the input. Throws an Error with a message of one line if there is no valid password. */
export async function readPassword(
  input: PasswordInput,
  { say, secondsMax }: PasswordInputOptions,
): Promise<string> {
  const isTerminal = input.isTTY === true;
  const restore = (): void => {
    if (isTerminal) input.setRawMode?.(false);
  };
  const timer = setTimeout(() => {
    restore();
    input.destroy(new Error(`No password came within ${secondsMax} seconds.`));
  }, secondsMax * 1000);
  try {
    if (isTerminal) input.setRawMode?.(true);
    return toPassword(isTerminal ? await askTwice(input, say) : await readFirst(input));
  } finally {
    clearTimeout(timer);
    restore();
    input.destroy();
  }
}

async function readFirst(input: PasswordInput): Promise<Buffer> {
  for await (const line of readLines(input)) return line;
  throw new Error('There is no password on standard input.');
}

async function askTwice(input: PasswordInput, say: (text: string) => void): Promise<Buffer> {
  let first: Buffer | undefined;
  say('Password: ');
  try {
    for await (const line of readLines(input)) {
      if (first === undefined) {
        first = line;
        say('\nThe same again: ');
      } else if (first.equals(line)) return line;
      else throw new Error('The two passwords differ.');
    }
  } finally {
    say('\n');
  }
  throw new Error('The terminal is gone: nothing has changed.');
}

/** The bytes that a terminal in raw mode sends for these keys. Each is one byte in UTF-8 too. */
const key = {
  interrupt: 0x03,
  endOfInput: 0x04,
  backspace: 0x08,
  lineFeed: 0x0a,
  return: 0x0d,
  clear: 0x15,
  delete: 0x7f,
} as const;

/** Yields lines without their terminators. The last line need not have one. */
async function* readLines(input: PasswordInput): AsyncGenerator<Buffer, void> {
  const isTerminal = input.isTTY === true;
  const line: number[] = [];
  let before = 0;
  // The input stays open, so that the terminal's mode can be restored.
  for await (const chunk of input.iterator({ destroyOnReturn: false })) {
    for (const byte of chunk as Buffer) {
      // no encoding is set
      // CR followed by LF is one line end.
      const isEnd = byte === key.return || (byte === key.lineFeed && before !== key.return);
      before = byte;
      if (isEnd) yield Buffer.from(line.splice(0));
      else if (isTerminal) press(line, byte);
      else append(line, byte);
    }
  }
  if (!isTerminal && line.length > 0) yield Buffer.from(line);
}

function press(line: number[], byte: number): void {
  if (byte === key.interrupt || byte === key.endOfInput) {
    throw new Error('No password was given: nothing has changed.');
  }
  if (byte === key.clear) line.length = 0;
  else if (byte === key.backspace || byte === key.delete) removeCharacter(line);
  else if (byte !== key.lineFeed) append(line, byte);
}

/** Removes the last character, which can be several bytes of UTF-8 (RFC 3629 §3). */
function removeCharacter(line: number[]): void {
  let removed = line.pop();
  while (removed !== undefined && removed >= 0x80 && removed < 0xc0) removed = line.pop();
}

function append(line: number[], byte: number): void {
  if (line.length === passwordBytesMax) {
    throw new Error(`A password must have at most ${passwordBytesMax} bytes.`);
  }
  line.push(byte);
}

function toPassword(bytes: Buffer): string {
  let password: string;
  try {
    password = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('A password must be UTF-8.');
  }
  if (password === '') throw new Error('A password must not be empty.');
  // Control characters come from arrow keys or binary files, and cannot be typed at a login.
  if (/\p{Cc}/u.test(password)) throw new Error('A password must not hold control characters.');
  return password;
}
