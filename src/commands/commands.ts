/**
 * What the program does with arguments, instead of serving. The longer commands are loaded when
 * used.
 */

import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Config, readConfig, secretSettings, settings } from '../config.ts';
import { createLocalClock } from '../domain/local-date-time.ts';
import { codeOf, toReason } from '../errors.ts';
import { backUpStore, openAccounts, startSeconds } from '../store/open.ts';
import { type CommandContext, ownAddress, toLog, UsageError } from './command.ts';

/** Acts on the arguments that follow its name, and returns the text to print on success. */
type RunCommand = (args: readonly string[], context: CommandContext) => string | Promise<string>;

const commands: Readonly<Record<string, RunCommand>> = {
  accounts: async (args, context) => (await import('./accounts.ts')).runAccounts(args, context),
  backup: backUp,
  export: async (args, context) => (await import('./export.ts')).runExport(args, context),
  import: async (args, context) => (await import('./import.ts')).runImport(args, context),
  migrate,
  '--check': async (_args, context) => (await import('./check.ts')).runCheck(context),
  '--healthcheck': (_args, { environment }) => askHealth(readConfig(environment)),
  '--help': helpText,
  '--version': (_args, { version }) => version(),
};

/**
 * Runs the command that the first argument names. Writes its result, or the reason why it failed.
 * Returns the exit code: 0 for success, 1 for failure, 2 for invalid arguments.
 */
export async function runCommand([name = '', ...args]: readonly string[], context: CommandContext) {
  const { output, errors } = context;
  // The reader of a pipe may close it early.
  for (const stream of [output, errors]) stream.on('error', () => undefined);
  try {
    const run = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (run === undefined) throw new UsageError(`inkwell: ${notKnown(name)}. Try --help.`);
    if (name.startsWith('-') && args.length > 0) {
      throw new UsageError(`inkwell: ${name} takes no argument. Try --help.`);
    }
    const result = await run(args, context);
    if (result !== '') output.write(`${result}\n`);
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

/** Writes a copy of the store, as it is at one moment, to a new file, also while servers use it. */
async function backUp(args: readonly string[], { environment }: CommandContext): Promise<string> {
  const [file = '', ...others] = args;
  if (file === '' || file.startsWith('-') || others.length > 0) {
    throw new UsageError('usage: node dist/server.js backup <file>');
  }
  await backUpStore(readConfig(environment).storeUrl, file);
  return `The store is in ${JSON.stringify(file)}.`;
}

/** Creates or migrates the tables. The initial records are left to the server. */
async function migrate(args: readonly string[], context: CommandContext): Promise<string> {
  if (args.length > 0) throw new UsageError('usage: node dist/server.js migrate');
  const { storeUrl, storeTimeoutSeconds: timeoutSeconds } = readConfig(context.environment);
  const now = createLocalClock(context.now);
  const options = { now, timeoutSeconds, log: toLog(context), startSeconds, mayCreate: true };
  // Opening the store also migrates it.
  await (await openAccounts(storeUrl, options)).close();
  return 'The tables of the store fit this version.';
}

/** The store may take a second to answer; the rest allows for a busy machine. */
const healthMilliseconds = 3_000;

/** Asks the server on this machine; resolves with the response of one that is ready. */
function askHealth(config: Config): Promise<string> {
  const port = config.adminPort ?? config.port;
  if (port === 0) throw new Error('PORT is 0: the port is not known.');
  const host = ownAddress[config.host] ?? config.host;
  const signal = AbortSignal.timeout(healthMilliseconds);
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      const reason = codeOf(error) ?? 'timeout';
      reject(new Error(`No response from port ${port} of ${host} (${reason}).`));
    };
    const request = get({ host, port, path: '/readyz', signal, agent: false }, (response) => {
      const isReady = response.statusCode === 200;
      text(response).then((body) => (isReady ? resolve(body) : reject(new Error(body))), fail);
    });
    request.once('error', fail);
  });
}

const usage = [
  'usage: inkwell                  serves until SIGTERM',
  '       inkwell --check          checks the settings, the store, the folder and the ports',
  '       inkwell --healthcheck    asks the running server whether it is ready: exits with 0 or 1',
  '       inkwell accounts --help  manages the accounts in the store',
  '       inkwell backup <file>    copies a SQLite store to a new file, also while it is in use',
  '       inkwell export           writes the whole store to standard output, as JSON Lines',
  '       inkwell import           adds what standard input has: all or nothing',
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
