/** `backup` and `migrate`: act on the whole store, also while servers use it. */

import { readConfig } from '../config.ts';
import { createLocalClock } from '../domain/scalars.ts';
import { backUpStore, openAccounts, startSeconds } from '../store/open.ts';
import { type RunCommand, toLog, UsageError } from './command.ts';

/** Writes a copy of the store, as it is at one moment, to a new file. */
export const runBackup: RunCommand = async (args, context) => {
  const [file = '', ...others] = args;
  if (file === '' || file.startsWith('-') || others.length > 0) {
    throw new UsageError('usage: node dist/server.js backup <file>');
  }
  await backUpStore(readConfig(context.environment).storeUrl, file);
  return `The store is in ${JSON.stringify(file)}.`;
};

/** Creates or migrates the tables. The initial records are left to the server. */
export const runMigrate: RunCommand = async (args, context) => {
  if (args.length > 0) throw new UsageError('usage: node dist/server.js migrate');
  const { storeUrl, storeTimeoutSeconds: timeoutSeconds } = readConfig(context.environment);
  const now = createLocalClock(context.now);
  const options = { now, timeoutSeconds, log: toLog(context), startSeconds, mayCreate: true };
  // Opening the store also migrates it.
  await (await openAccounts(storeUrl, options)).close();
  return 'The tables of the store are of this version.';
};
