/** What the arguments of the program ask for. */

import { parseArgs } from 'node:util';
import { settings } from '../config.ts';
import { toReason } from '../errors.ts';
import { commands, type LoadCommand } from './commands.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export type Asked =
  | { readonly kind: 'serve'; readonly environment: Environment }
  | { readonly kind: 'check'; readonly environment: Environment }
  | { readonly kind: 'healthcheck'; readonly environment: Environment }
  | { readonly kind: 'print'; readonly text: string }
  | { readonly kind: 'command'; readonly load: LoadCommand; readonly args: readonly string[] }
  | { readonly kind: 'unknown'; readonly message: string };

const options = {
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
  check: { type: 'boolean' },
  healthcheck: { type: 'boolean' },
  port: { type: 'string' },
  host: { type: 'string' },
} as const;

/** `--port` and `--host` come before the variables of the same names. */
export function parseArguments(
  args: readonly string[],
  environment: Environment,
  getVersion: () => string,
): Asked {
  const [command = '', ...rest] = args;
  const load = commands.get(command);
  if (load !== undefined) return { kind: 'command', load, args: rest };
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    return { kind: 'unknown', message: toReason(error).split('. ')[0] ?? '' };
  }
  const { values, positionals } = parsed;
  const [other] = positionals;
  if (other !== undefined) {
    const known = [...commands.keys()].join(', ');
    const message = `there is no command ${JSON.stringify(other)}, only ${known}`;
    return { kind: 'unknown', message };
  }
  if (values.help === true) return { kind: 'print', text: helpText() };
  if (values.version === true) return { kind: 'print', text: getVersion() };
  const given = { ...environment };
  if (values.port !== undefined) given['PORT'] = values.port;
  if (values.host !== undefined) given['HOST'] = values.host;
  if (values.healthcheck === true) return { kind: 'healthcheck', environment: given };
  return { kind: values.check === true ? 'check' : 'serve', environment: given };
}

const usage = [
  'usage: inkwell [--port <port>] [--host <address>]   serves until SIGTERM',
  '       inkwell --check          reads the settings, says what it would do, and exits',
  '       inkwell --healthcheck    asks the running server whether it is ready: exits with 0 or 1',
  '       inkwell accounts --help  the accounts that a durable store keeps',
  '       inkwell backup <file>    copies a SQLite store to a new file, while it is served',
  '       inkwell migrate          makes the tables of a durable store, or brings them up to date',
  '       inkwell --version',
  '',
  'Without installing it: node dist/server.js in the place of inkwell. The settings are',
  'environment variables:',
  '',
].join('\n');

function helpText(): string {
  const rows = Object.values(settings).map(({ name, fallback, unit, meaning }) => {
    const facts = [fallback === '' ? '' : `default ${fallback}`, unit].filter(
      (fact) => fact !== '',
    );
    const tail = facts.length === 0 ? '' : ` (${facts.join('; ')})`;
    return `  ${name.padEnd(26)}${meaning.replaceAll('`', '')}${tail}`;
  });
  return usage + rows.join('\n');
}
