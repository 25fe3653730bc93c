/**
 * Reads a new password: from a terminal, where it is asked for twice and not shown, or from the
 * first line that a program writes. It is never an argument: other users can see those.
 */

import type { Readable } from 'node:stream';
import { passwordBytesMax } from './password.ts';

/** Standard input, as the process has it. */
export interface PasswordInput extends Readable {
  readonly isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
}

export interface PasswordInputOptions {
  /** Shows a question at the terminal. */
  readonly say: (text: string) => void;
  /** So long the input may take. */
  readonly secondsMax: number;
}

/** The input is at its end afterwards. Throws an Error of one line where no password comes. */
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
    if (!isTerminal) return toPassword(await readLine(input));
    input.setRawMode?.(true);
    const [first, second] = await askTwice(input, say);
    if (!first.equals(second)) throw new Error('The two passwords differ.');
    return toPassword(first);
  } finally {
    clearTimeout(timer);
    restore();
    input.destroy();
  }
}

/** The bytes before the first line's end; of a last line without one, all. */
async function readLine(input: PasswordInput): Promise<Buffer> {
  const bytes: number[] = [];
  for await (const chunk of chunksOf(input)) {
    for (const byte of chunk) {
      if (byte === key.lineFeed) return Buffer.from(withoutReturn(bytes));
      append(bytes, byte);
    }
  }
  if (bytes.length === 0) throw new Error('There is no password on standard input.');
  return Buffer.from(withoutReturn(bytes));
}

function withoutReturn(bytes: readonly number[]): readonly number[] {
  return bytes.at(-1) === key.return ? bytes.slice(0, -1) : bytes;
}

/** What a terminal in raw mode sends for its keys, ASCII and so one byte of UTF-8 each. */
const key = {
  interrupt: 0x03,
  endOfInput: 0x04,
  backspace: 0x08,
  lineFeed: 0x0a,
  return: 0x0d,
  clear: 0x15,
  delete: 0x7f,
} as const;

const questions = ['Password: ', 'The same again: '] as const;

async function askTwice(
  input: PasswordInput,
  say: (text: string) => void,
): Promise<readonly [Buffer, Buffer]> {
  const bytes: number[] = [];
  let first: Buffer | undefined;
  let before = 0;
  say(questions[0]);
  for await (const chunk of chunksOf(input)) {
    for (const byte of chunk) {
      // What is pasted may end its lines with both: that is one end.
      const isEnd = byte === key.return || (byte === key.lineFeed && before !== key.return);
      before = byte;
      if (isEnd) {
        say('\n');
        const line = Buffer.from(bytes.splice(0));
        if (first !== undefined) return [first, line];
        first = line;
        say(questions[1]);
      } else if (byte === key.interrupt || byte === key.endOfInput) {
        say('\n');
        throw new Error('No password was given: nothing has changed.');
      } else if (byte !== key.lineFeed) {
        press(bytes, byte);
      }
    }
  }
  throw new Error('The terminal is gone: nothing has changed.');
}

function press(bytes: number[], byte: number): void {
  if (byte === key.clear) bytes.length = 0;
  else if (byte === key.backspace || byte === key.delete) removeCharacter(bytes);
  else append(bytes, byte);
}

/** The last byte, and of a character of several all. */
function removeCharacter(bytes: number[]): void {
  let removed = bytes.pop();
  while (removed !== undefined && isContinuation(removed)) removed = bytes.pop();
}

/** UTF-8 (RFC 3629 §3): every byte of a character but its first. */
function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte < 0xc0;
}

function append(bytes: number[], byte: number): void {
  // One more for a carriage return at the end.
  if (bytes.length > passwordBytesMax) throw tooLong();
  bytes.push(byte);
}

/** Leaves the input open, so that a terminal can be set back. */
function chunksOf(input: PasswordInput): AsyncIterable<Buffer> {
  return input.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>; // no encoding is set
}

function toPassword(bytes: Buffer): string {
  if (bytes.length > passwordBytesMax) throw tooLong();
  let password: string;
  try {
    password = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('A password must be UTF-8.');
  }
  if (password === '') throw new Error('A password must not be empty.');
  // An arrow key, or a file that is no text: nobody could type it at a login again.
  if (/\p{Cc}/u.test(password)) throw new Error('A password must not hold control characters.');
  return password;
}

function tooLong(): Error {
  return new Error(`A password must have at most ${passwordBytesMax} bytes.`);
}
