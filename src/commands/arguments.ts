/** Parses the program's arguments. */

import { parseArgs } from 'node:util';
import { secretSettings, settings } from '../config.ts';
import { toReason } from '../errors.ts';
import { report, type Command, UsageError } from './command.ts';
import { commands } from './commands.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Invocation {
  /** `--port` and `--host` override the variables of the same names. */
  readonly environment: Environment;
  /** Undefined if the program is to start the server. */
  readonly run: Command | undefined;
}

const options = {
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
  check: { type: 'boolean' },
  healthcheck: { type: 'boolean' },
  port: { type: 'string' },
  host: { type: 'string' },
} as const;

export function parseArguments(
  args: readonly string[],
  environment: Environment,
  getVersion: () => string,
): Invocation {
  const [name = '', ...rest] = args;
  const load = commands.get(name);
  if (load !== undefined) {
    return { environment, run: report(async (context) => (await load())(rest, context)) };
  }
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const [other] = positionals;
    if (other !== undefined) throw new Error(noCommand(other));
    const { port: PORT = environment['PORT'], host: HOST = environment['HOST'] } = values;
    return { environment: { ...environment, PORT, HOST }, run: toCommand(values, getVersion) };
  } catch (error) {
    const usageError = new UsageError(`inkwell: ${toReason(error).split('. ')[0]}. Try --help.`);
    return { environment, run: report(() => Promise.reject(usageError)) };
  }
}

type Flags = Partial<Readonly<Record<keyof typeof options, boolean | string>>>;

function toCommand(flags: Flags, getVersion: () => string): Command | undefined {
  if (flags.help) return report(() => Promise.resolve(helpText()));
  if (flags.version) return report(() => Promise.resolve(getVersion()));
  if (flags.healthcheck) {
    return async (context) => (await import('./healthcheck.ts')).runHealthcheck(context);
  }
  if (flags.check) return report(async (context) => (await import('./check.ts')).runCheck(context));
  return undefined;
}

function noCommand(name: string): string {
  return `there is no command ${JSON.stringify(name)}, only ${[...commands.keys()].join(', ')}`;
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
    const facts = [fallback && `default ${fallback}`, unit].filter((fact) => fact !== '');
    const tail = facts.length === 0 ? '' : ` (${facts.join('; ')})`;
    return `  ${name.padEnd(26)}${meaning.replaceAll('`', '')}${tail}`;
  });
  const files = secretSettings.map(({ name }) => `${name}_FILE`).join(', ');
  return `${usage}${rows.join('\n')}\n\nIn their place, files that have the value: ${files}.`;
}
