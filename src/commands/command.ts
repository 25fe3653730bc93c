/** What all commands share. */

import type { Writable } from 'node:stream';
import type { AccountsOptions } from '../store/driver.ts';
import type { PasswordInput } from './password-input.ts';

/** The streams, environment and clock of the process; the settings are those of the server. */
export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly input: PasswordInput;
  readonly output: Writable;
  readonly errors: Writable;
  readonly now: () => Date;
  readonly version: () => string;
}

/** Acts on the arguments that follow its name, and returns the text to print on success. */
export type RunCommand = (
  args: readonly string[],
  context: CommandContext,
) => string | Promise<string>;

/** Invalid arguments. The message is the usage text. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Writes what a command waits for as a line on standard error. */
export function toLog({ errors }: CommandContext): AccountsOptions['log'] {
  return (_level, event, facts = {}) => {
    errors.write(`inkwell: ${[event, ...Object.values(facts)].join(': ')}\n`);
  };
}
