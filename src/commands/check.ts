/** `--check`: describes what a start would do with the settings. It opens no port and no store. */

import { loadAccounts } from '../auth/accounts.ts';
import { type Config, readConfig } from '../config.ts';
import { readTrustedDocuments } from '../graphql/documents/trusted-documents.ts';
import { adviseOn } from './advice.ts';
import type { CommandContext } from './command.ts';

export async function runCheck({ environment }: CommandContext): Promise<string> {
  const config = readConfig(environment);
  return [...(await describeStart(config)), ...adviseOn(config, environment)].join('\n');
}

/** Returns one line for each fact. Rejects if a file that a setting names cannot be used. */
async function describeStart(config: Config): Promise<readonly string[]> {
  const { host, port, adminPort, requireAuth, storeUrl, trustedDocuments } = config;
  const accounts = await loadAccounts(config);
  await readTrustedDocuments(trustedDocuments);
  const place = host === '' ? 'all addresses' : host;
  const admin = toAdmin(adminPort);
  const kept = storeUrl === '' || storeUrl === 'memory:' ? 'in memory' : `in ${toPlain(storeUrl)}`;
  const files = config.uploadDir === '' ? 'a temporary folder' : config.uploadDir;
  const configured = `${accounts.length} configured${config.demoData ? ', with demo data' : ''}`;
  return [
    `listens on port ${port} of ${place}${admin}`,
    `keeps records ${kept}, and files in ${files}`,
    `accounts: ${configured}`,
    `changing data needs ${requireAuth === 'writes' ? 'a token' : 'no token'}`,
  ];
}

function toAdmin(adminPort: Config['adminPort']): string {
  if (adminPort === undefined) return '';
  return adminPort === 'main' ? ', with metrics' : `, health and metrics on port ${adminPort}`;
}

/** Removes what may be a password. */
function toPlain(storeUrl: string): string {
  if (!URL.canParse(storeUrl)) return 'a database';
  const { protocol, host, pathname } = new URL(storeUrl);
  // An unescaped slash in a password ends the host, so that the password is in the path.
  return pathname.includes('@') ? 'a database' : `${protocol}//${host}${pathname}`;
}
