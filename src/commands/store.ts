/** `backup <file>` and `migrate`: for the store as a whole, beside the servers that use it. */

import { readConfig } from '../config.ts';
import { formatLocalDateTime } from '../domain/local-date-time.ts';
import { backUpStore, openAccounts, startSeconds } from '../store/open.ts';
import { answer, type CommandContext, type ExitCode, toLog, UsageError } from './command.ts';

/** A copy of the store as it is at one moment, in a file that is not there yet. */
export function runBackup(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  return answer(context, async () => {
    const [file = '', ...others] = args;
    if (file === '' || file.startsWith('-') || others.length > 0) {
      throw new UsageError('usage: node dist/server.js backup <file>');
    }
    await backUpStore(readConfig(context.environment).storeUrl, file);
    return `The store is in ${JSON.stringify(file)}.`;
  });
}

/** Makes the tables, or brings them to this version; the first records are left to the server. */
export function runMigrate(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  return answer(context, async () => {
    if (args.length > 0) throw new UsageError('usage: node dist/server.js migrate');
    const { storeUrl, storeTimeoutSeconds: timeoutSeconds } = readConfig(context.environment);
    const now = (): string => formatLocalDateTime(context.now());
    // Whatever opens the store migrates it.
    const waiting = { log: toLog(context), startSeconds };
    const opened = await openAccounts(storeUrl, { now, timeoutSeconds, ...waiting });
    await opened.close();
    return 'The tables of the store are of this version.';
  });
}
