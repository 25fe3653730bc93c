/** A new password from a terminal or from a pipe, and everything that is none. */

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { readPassword } from '../../dist/commands/accounts.js';
import type { PasswordInput } from '../../dist/commands/command.js';
import { within } from '../support/until.ts';

type Chunks = readonly (string | Buffer)[];

/** `modes`: every change of the terminal's mode. */
function atTerminal(keys: Chunks, secondsMax = 20) {
  const stream = new PassThrough();
  const modes: boolean[] = [];
  const input: PasswordInput = Object.assign(stream, {
    isTTY: true,
    setRawMode: (isRaw: boolean) => modes.push(isRaw),
  });
  let said = '';
  const write = (text: string): void => {
    assert.deepEqual(modes.slice(0, 1), [true], 'asked while the terminal echoes');
    said += text;
  };
  const password = readPassword(input, write, secondsMax);
  for (const chunk of keys) stream.write(chunk);
  return { password, said: () => said, modes };
}

function fromPipe(chunks: Chunks): Promise<string> {
  const input = new PassThrough();
  const write = (): void => assert.fail('a pipe is asked for nothing');
  const password = readPassword(input, write, 20);
  for (const chunk of chunks) input.write(chunk);
  input.end();
  return password;
}

const long = 'x'.repeat(1_024);

/** What is taken: a text, or refused: an error; chunk after chunk. */
const typed: readonly (readonly [string | RegExp, ...Chunks])[] = [
  ['ink', 'ink\r', 'ink\r'],
  ['ink', 'i', 'n', 'k', '\r', 'i', 'n', 'k', '\n'],
  ['ink', 'ink\rink\r'],
  ['ink', 'ink\r\nink\r\n'],
  ['ink', 'ink\r', '\nink\r'],
  ['ink', 'in\u007f\u007f\u007f\u007fink\r', 'inn\bk\r'],
  ['ink', 'wrong\u0015ink\r', 'ink\r'],
  ['a', 'aä語😀\u007f\u007f\u007f\r', 'a\r'],
  ['ä', Buffer.from([0xc3]), Buffer.from([0xa4]), '\r', 'ä\r'],
  [' ink ', ' ink \r', ' ink \r'],
  [long, `${long}\r`, `${long}\r`],
  [/differ/, 'ink\r', 'inc\r'],
  [/empty/, '\r', '\r'],
  [/nothing has changed/, 'ink\u0003'],
  [/nothing has changed/, 'ink\r', 'in\u0003'],
  [/nothing has changed/, '\u0004'],
  [/UTF-8/, Buffer.from([0xff, 0x0d, 0xff, 0x0d])],
  [/at most 1024 bytes/, `${long}x`, '\r', `${long}x`, '\r'],
];

const piped: typeof typed = [
  ['ink', 'ink\n'],
  ['ink', 'ink'],
  ['ink', 'ink\r\n'],
  // A mark of the byte order, as PowerShell and Windows editors write it.
  ['ink', Buffer.from([0xef, 0xbb]), Buffer.from([0xbf]), 'ink\n'],
  ['ink', 'i', 'nk\nmore', '\n'],
  [' i\u00e4 ', ' i', Buffer.from([0xc3]), Buffer.from([0xa4]), ' \n'],
  [long, `${long}\r\n`],
  ['ink', `ink\n${'x'.repeat(100_000)}`],
  [/nothing has changed/],
  [/empty/, '\nink\n'],
  [/empty/, '\r\n'],
  [/control characters/, 'i\tnk\n'],
  [/control characters/, 'i\0nk\n'],
  [/UTF-8/, Buffer.from([0x69, 0xe4, 0x0a])],
  [/at most 1024 bytes/, `${long}x\n`],
  [/at most 1024 bytes/, 'ä'.repeat(513)],
  [/at most 1024 bytes/, 'x'.repeat(1_000_000)],
];

describe('at a terminal', () => {
  for (const [expected, ...keys] of typed) {
    test(`${nameOf(keys)} is taken or refused, and not shown`, async () => {
      const { password, said, modes } = atTerminal(keys);
      if (typeof expected === 'string') assert.equal(await password, expected);
      else await assert.rejects(password, isFault(expected));
      if (typeof expected === 'string') assert.equal(said(), 'Password: \nRepeat the password: \n');
      assert.deepEqual(modes, [true, false]);
    });
  }

  test('that goes away, or where nobody types, the waiting ends', async () => {
    const stream = new PassThrough();
    const input = Object.assign(stream, { isTTY: true, setRawMode: () => undefined });
    const waiting = readPassword(input, () => undefined);
    stream.end('ink\r');
    await assert.rejects(waiting, isFault(/nothing has changed/));

    const { password, modes } = atTerminal(['ink\r', 'in'], 0.05);
    await assert.rejects(password, isFault(/nothing has changed/));
    assert.equal(modes.at(-1), false);
  });
});

describe('from a pipe', () => {
  for (const [expected, ...chunks] of piped) {
    test(`${nameOf(chunks)}: its first line is taken or refused`, async () => {
      const password = fromPipe(chunks);
      if (typeof expected === 'string') assert.equal(await password, expected);
      else await assert.rejects(password, isFault(expected));
    });
  }

  test('that never ends its first line, or stays silent, no more is gathered', async () => {
    const [endless, silent] = [new PassThrough(), new PassThrough()];
    const waiting = readPassword(endless, () => undefined);
    for (let sent = 0; sent < 20; sent += 1) endless.write(long);
    await assert.rejects(within(waiting, 'a refusal', 5), isFault(/at most 1024 bytes/));
    const late = readPassword(silent, () => undefined, 0.05);
    await assert.rejects(late, isFault(/nothing has changed/));
    assert.ok(endless.destroyed && silent.destroyed);
  });
});

function nameOf(chunks: Chunks): string {
  return JSON.stringify(chunks.join('|').slice(0, 40));
}

/** One line, which repeats nothing of what was typed. */
function isFault(fault: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof Error);
    assert.match(error.message, fault);
    assert.doesNotMatch(error.message, /ink|xxx|\n/);
    return true;
  };
}
