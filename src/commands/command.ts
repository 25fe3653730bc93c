/** The context and the output that all commands share. */

import type { Writable } from 'node:stream';
import { ConfigError } from '../config.ts';
import { toReason } from '../errors.ts';
import type { AccountsOptions } from '../store/driver.ts';
import type { PasswordInput } from './password-input.ts';

/** The streams, environment and clock of the process; the settings are those of the server. */
export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly input: PasswordInput;
  readonly output: Writable;
  readonly errors: Writable;
  /** For events that belong in a log even though no server runs. */
  readonly log: AccountsOptions['log'];
  readonly now: () => Date;
  readonly version: () => string;
}

/** 0 for success, 1 for failure, 2 for invalid arguments. */
export type ExitCode = 0 | 1 | 2;

/** Acts on the arguments that follow its name, and resolves with the text to print on success. */
export type RunCommand = (args: readonly string[], context: CommandContext) => Promise<string>;

/** Writes what `run` resolves with, or the reason why it rejects, and returns the exit code. */
export async function report(
  { output, errors }: CommandContext,
  run: () => Promise<string>,
): Promise<ExitCode> {
  // The reader of a pipe may close it early.
  output.on('error', () => undefined);
  errors.on('error', () => undefined);
  try {
    await write(output, await run());
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      await write(errors, error.message);
      return 2;
    }
    const lines = toReason(error).split('\n');
    const shown = error instanceof ConfigError ? lines : lines.slice(0, 1);
    await write(errors, shown.map((line) => `inkwell: ${line}`).join('\n'));
    return 1;
  }
}

/** Writes what a command waits for as a line on standard error. */
export function toLog({ errors }: CommandContext): AccountsOptions['log'] {
  return (_level, event, facts = {}) => {
    errors.write(`inkwell: ${[event, ...Object.values(facts)].join(': ')}\n`);
  };
}

/** Invalid arguments. The message is the usage text. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Resolves when the text was written, or when the reader has closed the pipe. */
function write(to: Writable, text: string): Promise<void> {
  if (text === '') return Promise.resolve();
  return new Promise((resolve) => {
    to.write(`${text}\n`, () => resolve());
  });
}
