/**
 * `--check`: describes what a start would do with the settings, and fails where the start would: it
 * opens the files, the store, the folder of uploads and the ports, and changes nothing in them.
 */

import { mkdtemp, rmdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAccounts } from '../auth/accounts.ts';
import { type Config, readConfig } from '../config.ts';
import { codeOf } from '../errors.ts';
import { readTrustedDocuments } from '../graphql/documents/trusted-documents.ts';
import { checkStore } from '../store/open.ts';
import { type CommandContext, toLog } from './command.ts';
import { findSettingWarnings } from './setting-warnings.ts';

export async function runCheck(context: CommandContext): Promise<string> {
  const { environment } = context;
  const config = readConfig(environment);
  const accounts = await loadAccounts(config);
  await readTrustedDocuments(config.trustedDocuments);
  const timeoutSeconds = config.storeTimeoutSeconds;
  await checkStore(config.storeUrl, { timeoutSeconds, log: toLog(context), startSeconds: 1 });
  await checkFolder(config.uploadDir || tmpdir());
  await checkPort('PORT', config.host, config.port);
  if (config.adminPort !== undefined) await checkPort('ADMIN_PORT', config.host, config.adminPort);
  const facts = describeStart(config, accounts.length);
  return [...facts, ...findSettingWarnings(config, environment)].join('\n');
}

/** Returns one line for each fact. */
function describeStart(config: Config, accounts: number): readonly string[] {
  const { host, port, adminPort, requireAuth, storeUrl, uploadDir } = config;
  const address = host === '' ? 'all addresses' : host;
  const admin = adminPort === undefined ? '' : `, health and metrics on port ${adminPort}`;
  const inMemory = storeUrl === '' || storeUrl === 'memory:';
  const records = inMemory ? 'in memory' : `in ${toPlain(storeUrl)}`;
  return [
    `listens on port ${port} of ${address}${admin}`,
    `stores records ${records}, and files in ${uploadDir === '' ? 'a temporary folder' : uploadDir}`,
    `accounts: ${accounts} configured${config.demoData ? ', with demo data' : ''}`,
    `changing data needs ${requireAuth === 'none' ? 'no token' : 'a token'}`,
  ];
}

/** Removes what may be a password. */
function toPlain(storeUrl: string): string {
  if (!URL.canParse(storeUrl)) return 'a database';
  const { protocol, host, pathname } = new URL(storeUrl);
  // An unescaped slash in a password ends the host, so that the password is in the path.
  return pathname.includes('@') ? 'a database' : `${protocol}//${host}${pathname}`;
}

async function checkFolder(folder: string): Promise<void> {
  try {
    await rmdir(await mkdtemp(join(folder, 'inkwell-check-')));
  } catch (error) {
    throw new Error(`UPLOAD_DIR: no folder can be created in ${folder} (${codeOf(error)}).`, {
      cause: error,
    });
  }
}

function checkPort(name: string, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => {
      reject(new Error(`${name}: it is not possible to listen on ${port} (${codeOf(error)}).`));
    });
    server.listen(port, host === '' ? undefined : host, () => server.close(() => resolve()));
  });
}
