/**
 * `--check`: describes what a start would do with the settings, and fails where the start would: it
 * opens the files, the store, the folder of uploads and the ports, and changes nothing in them.
 * `findSettingWarnings`: what is valid but probably not intended, which a start logs too.
 */

import { mkdtemp, rmdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAccounts } from '../auth/accounts.ts';
import { type Config, readConfig, settings } from '../config.ts';
import { codeOf } from '../errors.ts';
import { readTrustedDocuments } from '../graphql/documents/trusted-documents.ts';
import { checkUploads } from '../store/files/open.ts';
import { checkStore } from '../store/open.ts';
import { type CommandContext, toLog } from './command.ts';

export async function runCheck(context: CommandContext): Promise<string> {
  const { environment } = context;
  const config = readConfig(environment);
  const accounts = await loadAccounts(config);
  await readTrustedDocuments(config.trustedDocuments);
  const timeoutSeconds = config.storeTimeoutSeconds;
  await checkStore(config.storeUrl, {
    timeoutSeconds,
    log: toLog(context),
    startSeconds: 1,
    checkFiles: (index) => checkUploads(config.uploadDir, index),
  });
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

/** Settings of older versions, with what holds instead. */
const removed: Readonly<Record<string, string>> = {
  ANSWER_CACHE_BYTES_MAX: 'use RESPONSE_CACHE_BYTES_MAX',
  GRAPHQL_DEPTH_MAX: 'the limit is 20',
  GRAPHQL_HTTP_DRAFT: 'statuses are those of the public audits',
  GRAPHQL_TOKENS_MAX: 'the limit is 2,000',
  LOG_LEVEL: 'use LOG_REQUESTS, or filter the lines by their level',
  REQUEST_TIMEOUT_SECONDS: 'a request may take as long as it moves',
  STORED_FILES_MAX: 'the limit is 10,000; STORED_BYTES_MAX limits their size',
  WAITING_BYTES_MAX: 'use REQUEST_MEMORY_BYTES_MAX',
  WS_PING_SECONDS: 'the interval is 15 seconds',
};

/** Returns one sentence for each warning. */
export function findSettingWarnings(config: Config, environment: NodeJS.ProcessEnv) {
  const names = Object.values(settings).map(({ name }) => name);
  const unknown = Object.keys(environment).flatMap((given) => {
    if (names.includes(given)) return [];
    if (Object.hasOwn(removed, given)) return [`${given} no longer exists: ${removed[given]}.`];
    const meant = names.find((name) => isNear(given, name));
    return meant === undefined ? [] : [`${given} is not a setting. Did you mean ${meant}?`];
  });
  const { environment: nodeEnv } = config;
  if (nodeEnv === 'production') return [...unknown, ...findOpenSettings(config)];
  return /^prod/i.test(nodeEnv) || isNear(nodeEnv, 'production')
    ? [...unknown, 'NODE_ENV is not "production", and counts as any other value.']
    : unknown;
}

/** Settings whose defaults suit development only. */
function findOpenSettings({ jwtSecret, requireAuth, demoData }: Config): readonly string[] {
  return [
    jwtSecret === '' && 'JWT_SECRET is not set: tokens become invalid when this process ends.',
    requireAuth === 'none' && 'REQUIRE_AUTH is none: everybody may change data.',
    demoData && 'DEMO_DATA is true: a new store is filled with demo posts.',
  ].filter((warning) => warning !== false);
}

/** Shorter names resemble too many unrelated variables. */
const lengthMin = 6;

/** True for one letter added, missing or changed, or two exchanged. Letter case does not count. */
function isNear(given: string, name: string): boolean {
  if (name.length < lengthMin || Math.abs(given.length - name.length) > 1) return false;
  const [a, b] = [given.toUpperCase(), name.toUpperCase()];
  let front = 0;
  while (front < a.length && a[front] === b[front]) front += 1;
  let back = 0;
  while (back < Math.min(a.length, b.length) - front && a.at(-1 - back) === b.at(-1 - back)) {
    back += 1;
  }
  const [restA, restB] = [a.slice(front, a.length - back), b.slice(front, b.length - back)];
  const isExchanged = restA.length === 2 && restA[0] === restB[1] && restA[1] === restB[0];
  return isExchanged || (restA.length <= 1 && restB.length <= 1);
}
