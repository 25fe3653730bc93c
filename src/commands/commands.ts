/** What the program does with arguments, instead of serving. Each command is loaded when used. */

import { secretSettings, settings } from '../config.ts';
import {
  type CommandContext,
  type ExitCode,
  report,
  type RunCommand,
  UsageError,
} from './command.ts';

const commands: Readonly<Record<string, () => Promise<RunCommand>>> = {
  accounts: async () => (await import('./accounts.ts')).runAccounts,
  backup: async () => (await import('./store.ts')).runBackup,
  migrate: async () => (await import('./store.ts')).runMigrate,
  '--check': async () => (await import('./check.ts')).runCheck,
  '--healthcheck': async () => (await import('./healthcheck.ts')).runHealthcheck,
  '--help': () => Promise.resolve(() => Promise.resolve(helpText())),
  '--version': () => Promise.resolve((_args, { version }) => Promise.resolve(version())),
};

/** Runs the command that the first argument names, and writes its result. */
export function runCommand(
  [name = '', ...args]: readonly string[],
  context: CommandContext,
): Promise<ExitCode> {
  return report(context, async () => {
    const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (load === undefined) throw new UsageError(`inkwell: ${notKnown(name)}. Try --help.`);
    const [extra] = name.startsWith('-') ? args : [];
    if (extra !== undefined)
      throw new UsageError(`inkwell: ${name} takes no argument. Try --help.`);
    return (await load())(args, context);
  });
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
