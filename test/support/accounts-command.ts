/** The command `accounts`, run in the process of the test. */

import assert from 'node:assert/strict';
import { type Ended, runCommandHere } from './command.js';

export type Env = Readonly<Record<string, string>>;

export const runHere = (args: readonly string[], env: Env, input = ''): Promise<Ended> =>
  runCommandHere(['accounts', ...args], { env, input });

/** The arguments between blanks. */
export const here = (args: string, env: Env, input = ''): Promise<Ended> =>
  runHere(args.split(' '), env, input);

export async function succeeds(running: Promise<Ended>, output: string): Promise<void> {
  assert.deepEqual(await running, { code: 0, output, errors: '' });
}

export async function fails(running: Promise<Ended>, fault: RegExp): Promise<void> {
  const { code, output, errors } = await running;
  assert.deepEqual([code, output], [1, '']);
  assert.match(errors, /^inkwell: [^\n]*\n$/);
  assert.match(errors, fault);
}
