/** What the program does with arguments, instead of serving. Each command is loaded when used. */

import { secretSettings, settings } from '../config.ts';
import { toReason } from '../errors.ts';
import { type CommandContext, type RunCommand, UsageError } from './command.ts';

const commands: Readonly<Record<string, () => RunCommand | Promise<RunCommand>>> = {
  accounts: async () => (await import('./accounts.ts')).runAccounts,
  backup: async () => (await import('./store.ts')).runBackup,
  migrate: async () => (await import('./store.ts')).runMigrate,
  '--check': async () => (await import('./check.ts')).runCheck,
  '--healthcheck': async () => (await import('./healthcheck.ts')).runHealthcheck,
  '--help': () => helpText,
  '--version':
    () =>
    (_args, { version }) =>
      version(),
};

/**
 * Runs the command that the first argument names. Writes its result, or the reason why it failed.
 * Returns the exit code: 0 for success, 1 for failure, 2 for invalid arguments.
 */
export async function runCommand(
  [name = '', ...args]: readonly string[],
  context: CommandContext,
): Promise<0 | 1 | 2> {
  const { output, errors } = context;
  // The reader of a pipe may close it early.
  for (const stream of [output, errors]) stream.on('error', () => undefined);
  try {
    const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (load === undefined) throw new UsageError(`inkwell: ${notKnown(name)}. Try --help.`);
    if (name.startsWith('-') && args.length > 0) {
      throw new UsageError(`inkwell: ${name} takes no argument. Try --help.`);
    }
    const text = await (await load())(args, context);
    if (text !== '') output.write(`${text}\n`);
    return 0;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    const lines = toReason(error).split('\n');
    errors.write(`${lines.map((line) => (isUsage ? line : `inkwell: ${line}`)).join('\n')}\n`);
    return isUsage ? 2 : 1;
  }
}

function notKnown(name: string): string {
  if (name.startsWith('-')) return `there is no option ${JSON.stringify(name)}`;
  const names = Object.keys(commands).filter((known) => !known.startsWith('-'));
  return `there is no command ${JSON.stringify(name)}, only ${names.join(', ')}`;
}

const usage = [
  'usage: inkwell                  serves until SIGTERM',
  '       inkwell --check          checks the settings, the store, the folder and the ports',
  '       inkwell --healthcheck    asks the running server whether it is ready: exits with 0 or 1',
  '       inkwell accounts --help  manages the accounts in the store',
  '       inkwell backup <file>    copies a SQLite store to a new file, also while it is in use',
  '       inkwell migrate          creates the tables of the store, or updates them',
  '       inkwell --version',
  '',
  'Without installation, replace inkwell by node dist/server.js. The settings are environment',
  'variables:',
  '',
].join('\n');

function helpText(): string {
  const rows = Object.values(settings).map(({ name, fallback, unit, meaning }) => {
    const facts = [fallback && `default ${fallback}`, unit].filter((fact) => fact !== '');
    const tail = facts.length === 0 ? '' : ` (${facts.join('; ')})`;
    return `  ${name.padEnd(26)}${meaning.replaceAll('`', '')}${tail}`;
  });
  const files = secretSettings.map(({ name }) => `${name}_FILE`).join(', ');
  return `${usage}${rows.join('\n')}\n\nFiles that contain the value of a setting: ${files}.`;
}
