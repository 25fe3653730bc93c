/** `backup`, `files` and `migrate`: act on the whole store, also while servers use it. */

import { type Config, readConfig } from '../config.ts';
import { createLocalClock } from '../domain/local-date-time.ts';
import type { OpenedAccounts } from '../store/driver.ts';
import {
  findDifferences,
  openUploadFolder,
  type UploadFolder,
  removeOrphans,
} from '../store/files/open.ts';
import { backUpStore, openAccounts, startSeconds } from '../store/open.ts';
import { type CommandContext, type RunCommand, toLog, UsageError } from './command.ts';

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
  await (await open(readConfig(context.environment), context)).close();
  return 'The tables of the store are of this version.';
};

const filesUsage = [
  'usage: node dist/server.js files [--remove]',
  'Lists the files in UPLOAD_DIR that the index in STORE_URL does not name and that are a day old,',
  'and the entries of the index that have no file. Prints nothing where there are none.',
  '--remove removes these files, and leaves the entries.',
].join('\n');

/** Lists, or removes, differences between the folder of durable uploads and its index. */
export const runFiles: RunCommand = async (args, context) => {
  const option = args.join(' ');
  if (option === '--help') return filesUsage;
  if (option !== '' && option !== '--remove') throw new UsageError(filesUsage);
  const config = readConfig(context.environment);
  const opened = await open(config, context);
  try {
    const folder = openUploadFolder(config.uploadDir, opened.openFileIndex);
    return await listDifferences(folder, option === '--remove');
  } finally {
    await opened.close();
  }
};

/** Returns one line for each difference: its kind and the name, separated by a tab. */
async function listDifferences(folder: UploadFolder, isRemoval: boolean): Promise<string> {
  const { orphans, missing, isNamed } = await findDifferences(folder);
  // With the index of another store, every file would be an orphan and would be removed.
  if (isRemoval && orphans.length > 0 && !isNamed) {
    throw new Error('STORE_URL: its index names no file that is in UPLOAD_DIR.');
  }
  const [first, ...others] = isRemoval ? await removeOrphans(folder, orphans) : [];
  if (first !== undefined) throw new Error(`Not removed: ${first}, and ${others.length} more.`);
  const kind = isRemoval ? 'removed' : 'file without an entry';
  const lines = orphans.map((name) => `${kind}\t${name}`);
  return [...lines, ...missing.map((entry) => `entry without a file\t${entry}`)].join('\n');
}

/** Opening the store also migrates it. */
function open(
  { storeUrl, storeTimeoutSeconds: timeoutSeconds }: Config,
  context: CommandContext,
): Promise<OpenedAccounts> {
  const now = createLocalClock(context.now);
  return openAccounts(storeUrl, { now, timeoutSeconds, log: toLog(context), startSeconds });
}
