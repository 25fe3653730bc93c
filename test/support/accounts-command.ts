/** The command `accounts`, run in the process of the test. */

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runAccounts } from '../../dist/commands/accounts.js';
import type { Ended } from './command.ts';

export type Env = Readonly<Record<string, string>>;

export async function runHere(
  args: readonly string[],
  environment: Env,
  given = '',
): Promise<Ended> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  input.end(given);
  const now = (): Date => new Date();
  const code = await runAccounts(args, { environment, input, output, errors, now });
  const texts = [output, errors].map((stream) => text(stream.end()));
  const [said = '', complained = ''] = await Promise.all(texts);
  return { code, output: said, errors: complained };
}

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
