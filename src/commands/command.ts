/** What all commands share: what they get, and how they answer. */

import type { Writable } from 'node:stream';
import type { PasswordInput } from '../auth/password-input.ts';
import { ConfigError } from '../config.ts';
import { toReason } from '../errors.ts';
import type { AccountsOptions } from '../store/driver.ts';

/** What the process has; settings are those of the server. */
export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly input: PasswordInput;
  readonly output: Writable;
  readonly errors: Writable;
  /** What belongs into a log, also where no server runs. */
  readonly log: AccountsOptions['log'];
  readonly now: () => Date;
}

/** 0 where it is done, 1 where it is not, 2 for arguments that are not understood. */
export type ExitCode = 0 | 1 | 2;

export type Command = (context: CommandContext) => Promise<ExitCode>;

/** Writes what `run` resolves with, or why it rejects: each faulty setting, else one line. */
export async function answer(
  { output, errors }: CommandContext,
  run: () => Promise<string>,
): Promise<ExitCode> {
  // The reader of the output may stop early.
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
    const told = error instanceof ConfigError ? lines : lines.slice(0, 1);
    await write(errors, told.map((line) => `inkwell: ${line}`).join('\n'));
    return 1;
  }
}

/** What a command waits for, as a line for a person. */
export function toLog({ errors }: CommandContext): AccountsOptions['log'] {
  return (_level, event, facts = {}) => {
    errors.write(`inkwell: ${[event, ...Object.values(facts)].join(': ')}\n`);
  };
}

/** The arguments are not understood: its message is the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Resolves when it is written, or when the reader is gone. */
function write(to: Writable, text: string): Promise<void> {
  if (text === '') return Promise.resolve();
  return new Promise((resolve) => {
    to.write(`${text}\n`, () => resolve());
  });
}
