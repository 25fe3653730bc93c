/** What all commands share. */

import type { Readable, Writable } from 'node:stream';
import type { AccountsOptions } from '../store/store.ts';

/** Standard input, as the process has it. */
export interface PasswordInput extends Readable {
  readonly isTTY?: boolean;
}

/** The streams, environment and clock of the process; the settings are those of the server. */
export interface CommandContext {
  readonly environment: NodeJS.ProcessEnv;
  readonly input: PasswordInput;
  readonly output: Writable;
  readonly errors: Writable;
  readonly now: () => Date;
  readonly version: () => string;
}

/** Invalid arguments. The message is the usage text. */
export class UsageError extends Error {}

/** Writes what a command waits for as a line on standard error. */
export function toLog({ errors }: CommandContext): AccountsOptions['log'] {
  return (_level, event, facts = {}) => {
    errors.write(`inkwell: ${[event, ...Object.values(facts)].join(': ')}\n`);
  };
}

/** Wildcard addresses cannot be connected to everywhere: the loopback address stands in. */
export const ownAddress: Readonly<Record<string, string>> = {
  '': '127.0.0.1',
  '0.0.0.0': '127.0.0.1',
  '::': '::1',
};
