/** The program as a command: `node dist/server.js <arguments>`. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { runCommand as runInProcess } from '../../dist/commands/commands.js';

const program = fileURLToPath(new URL('../../dist/server.js', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Its standard input, which is at its end then. */
  readonly input?: string;
  /** Is given what a process of its own writes to standard error, while it runs. */
  readonly onErrors?: (text: string) => void;
}

/** Longer than any of them takes; one that waits for ever is ended, and its code is null. */
const timeout = 300_000;

/** As a process of its own. */
export async function runCommand(
  args: readonly string[],
  { env = {}, input = '', onErrors = () => undefined }: CommandOptions = {},
): Promise<Ended> {
  // Node 22 tells on standard error that its SQLite is experimental.
  const flags = '--disable-warning=ExperimentalWarning';
  const given = { PATH: process.env['PATH'], NODE_OPTIONS: flags, ...env };
  const child = spawn(process.execPath, [program, ...args], { env: given, timeout });
  // It may end without having read.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  child.stderr.setEncoding('utf8').on('data', onErrors);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    exited,
  ]);
  return { code, output, errors };
}

/** In the process of the test, which takes a tenth of the time. Its version is `here`. */
export async function runCommandHere(
  args: readonly string[],
  { env = {}, input: given = '' }: CommandOptions = {},
): Promise<Ended> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  input.end(given);
  // Read meanwhile: a command waits for whoever takes its output.
  const texts = [output, errors].map((stream) => text(stream));
  const code = await runInProcess(args, {
    environment: env,
    input,
    output,
    errors,
    now: () => new Date(),
    version: () => 'here',
  });
  for (const stream of [output, errors]) stream.end();
  const [said = '', complained = ''] = await Promise.all(texts);
  return { code, output: said, errors: complained };
}

/** With one line that says why. */
export async function fails(running: Promise<Ended>, fault: RegExp): Promise<void> {
  const { code, output, errors } = await running;
  assert.deepEqual([code, output], [1, '']);
  assert.match(errors, /^inkwell: [^\n]*\n$/);
  assert.match(errors, fault);
}

/** util-linux's `script` gives a process a terminal of its own. */
const script = '/usr/bin/script';

/** Why a test at a terminal cannot run here, or false. */
export const skipTerminal: string | false =
  (process.platform !== 'linux' || !existsSync(script)) && `there is no ${script}`;

/** Types each answer when its question is there; gives back all that the terminal showed. */
export async function runAtTerminal(
  args: readonly string[],
  answers: readonly { readonly question: string; readonly keys: string }[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly shown: string }> {
  const line = [process.execPath, program, ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn(script, ['-qefc', line, '/dev/null'], {
    env: { PATH: process.env['PATH'], SHELL: '/bin/sh', ...env },
    timeout,
  });
  child.stdin.on('error', () => undefined);
  const left = [...answers];
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk;
    const [next] = left;
    if (next === undefined || !shown.includes(next.question)) return;
    left.shift();
    child.stdin.write(next.keys);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, shown };
}
