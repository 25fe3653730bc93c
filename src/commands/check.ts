/**
 * `--check`: describes what a start would do with the settings. It does what a start, the first
 * read, write, subscription and upload do, in a transaction that is rolled back or on a scratch
 * name, and says in a line for each what fails and what to do. It works beside a running node.
 * `findSettingWarnings`: what is valid but probably not intended, which a start logs too.
 */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { loadAccounts } from '../auth/accounts.ts';
import { type Config, readConfig } from '../config.ts';
import { codeOf, toReason } from '../errors.ts';
import { readTrustedDocuments } from '../graphql/documents/trusted-documents.ts';
import { checkUploads, tryUploads } from '../store/files/open.ts';
import { checkStore, isInMemory } from '../store/open.ts';
import type { InitialData } from '../store/store.ts';
import { type CommandContext, ownAddress, toLog } from './command.ts';

/** How long a node on this machine may take to answer. */
const nodeMilliseconds = 3_000;

export async function runCheck(context: CommandContext): Promise<string> {
  const { environment } = context;
  const config = readConfig(environment);
  const { host, port, adminPort, storeUrl, uploadDir } = config;
  const faults: string[] = [];
  const attempt = async <T>(work: Promise<T>): Promise<T | undefined> =>
    work.catch((error: unknown) => {
      faults.push(toReason(error));
      return undefined;
    });
  const configured = await attempt(loadAccounts(config));
  await attempt(readTrustedDocuments(config.trustedDocuments));
  const checking = checkStore(storeUrl, {
    timeoutSeconds: config.storeTimeoutSeconds,
    log: toLog(context),
    startSeconds: 1,
    listenUrl: config.storeListenUrl,
    connectionsMax: config.storeConnectionsMax,
    sample: createSample(),
    checkFiles: (index) => checkUploads(uploadDir, index),
  });
  const stored = (await attempt(checking)) ?? 0;
  await attempt(tryUploads(uploadDir));
  const running = [
    await attempt(checkPort('PORT', host, port)),
    adminPort === undefined ? '' : await attempt(checkPort('ADMIN_PORT', host, adminPort)),
  ];
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const accounts = (configured?.length ?? 0) + stored;
  const hasAccounts = accounts > 0;
  return [
    ...describeStart(config, accounts),
    ...running,
    ...findSettingWarnings(config, environment),
    ...(hasAccounts ? [] : findMissingAccounts(config)),
  ]
    .filter((line) => line !== '')
    .join('\n');
}

/** A record of each kind, for a transaction that is rolled back. */
function createSample(): InitialData {
  const [createdAt, id, text] = ['2026-01-05T09:00:00', randomUUID(), '-'];
  return {
    accounts: [],
    authors: [{ id, name: text, email: text, createdAt }],
    posts: [
      {
        id,
        title: text,
        content: text,
        status: 'PUBLISHED',
        createdAt,
        authorId: id,
        publishedAt: createdAt,
      },
    ],
    comments: [{ id, content: text, createdAt, postId: id, name: text, authorId: id }],
    todos: [{ id, title: text, completed: false }],
    articles: [{ id: Number.MAX_SAFE_INTEGER, json: '{}' }],
  };
}

/** Who may do what but comment, by REQUIRE_AUTH. */
const rights: Readonly<Record<Config['requireAuth'], readonly string[]>> = {
  none: ['everybody reads, changes and comments everything, drafts too'],
  writes: ['everybody reads everything, drafts too', 'every account changes everything'],
  owners: [
    'everybody reads what is published; drafts are for their authors and ADMIN',
    'posts and files are changed by their authors and ADMIN',
  ],
  members: [
    'accounts alone read what is published; drafts are for their authors and ADMIN',
    'posts and files are changed by their authors and ADMIN',
  ],
};

/** Who comments (R48). */
function describeCommenters({
  requireAuth,
  comments,
  commentsPerMinuteMax: max,
}: Config): readonly string[] {
  if (requireAuth === 'none') return [];
  if (comments === 'accounts') return ['accounts comment'];
  return [
    `everybody comments, without a token ${max} times a minute from one address`,
    comments === 'moderated'
      ? 'a comment waits until ADMIN or the author of its post approves it'
      : '',
  ];
}

/** Returns one line for each fact. */
function describeStart(config: Config, accounts: number): readonly string[] {
  const { host, port, adminPort, requireAuth, storeUrl, uploadDir, jwtSecret } = config;
  const address = host === '' ? 'all addresses' : host;
  const admin = adminPort === undefined ? '' : `, health and metrics on port ${adminPort}`;
  const inMemory = isInMemory(storeUrl);
  const records = inMemory ? 'in memory' : `in ${toPlain(storeUrl)}`;
  const isKept = {
    records: !inMemory,
    files: !inMemory && uploadDir !== '',
    tokens: jwtSecret !== '',
  };
  const named = (wanted: boolean): string =>
    Object.entries(isKept)
      .flatMap(([name, kept]) => (kept === wanted ? [name] : []))
      .join(', ');
  return [
    `listens on port ${port} of ${address}${admin}`,
    `stores records ${records}, and files in ${uploadDir === '' ? 'a temporary folder' : uploadDir}`,
    `kept at a restart: ${named(true) || 'nothing'}; lost: ${named(false) || 'nothing'}`,
    `accounts: ${accounts}${config.demoData ? '; a new store gets demo data' : ''}`,
    ...rights[requireAuth],
    ...describeCommenters(config),
  ];
}

/** Removes what may be a password. */
function toPlain(storeUrl: string): string {
  if (!URL.canParse(storeUrl)) return 'a database';
  const { protocol, host, pathname } = new URL(storeUrl);
  // An unescaped slash in a password ends the host, so that the password is in the path.
  return pathname.includes('@') ? 'a database' : `${protocol}//${host}${pathname}`;
}

const portCures: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses it',
  EACCES: 'this user may not: take one above 1023, or allow it (CAP_NET_BIND_SERVICE)',
  EADDRNOTAVAIL: 'HOST is no address of this machine',
  ENOTFOUND: 'HOST is not a name that is known',
};

/** Resolves with a line about the node that uses the port, if there is one; it may be replaced. */
async function checkPort(name: string, host: string, port: number): Promise<string> {
  const server = createServer();
  try {
    const listening = once(server, 'listening');
    server.listen(port, host === '' ? undefined : host);
    await listening;
    return '';
  } catch (error) {
    const code = codeOf(error) ?? 'unknown fault';
    if (code === 'EADDRINUSE' && (await isNode(host, port))) {
      return `a node runs on port ${port}: stop it before the next one starts`;
    }
    const cure = portCures[code] === undefined ? '' : `: ${portCures[code]}`;
    const message = `${name}: it is not possible to listen on ${port} (${code})${cure}.`;
    throw new Error(message, { cause: error });
  } finally {
    server.close();
  }
}

async function isNode(host: string, port: number): Promise<boolean> {
  const at = ownAddress[host] ?? host;
  const url = `http://${at.includes(':') ? `[${at}]` : at}:${port}/livez`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(nodeMilliseconds) });
    return (await response.text()) === '{"status":"live"}';
  } catch {
    return false;
  }
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
  const gone = Object.keys(environment).filter((given) => Object.hasOwn(removed, given));
  const isProduction = config.environment === 'production';
  return [
    ...gone.map((given) => `${given} no longer exists: ${removed[given]}.`),
    ...findLosses(config, environment),
    ...(isProduction ? findOpenSettings(config) : []),
    ...(/^prod/i.test(config.environment) && !isProduction
      ? ['NODE_ENV is not "production", and counts as any other value.']
      : []),
  ];
}

/** What is gone at the next restart, though it looks kept. */
function findLosses(config: Config, environment: NodeJS.ProcessEnv): readonly string[] {
  const { storeUrl, uploadDir } = config;
  const inMemory = isInMemory(storeUrl);
  const { DATABASE_URL: given = '' } = environment;
  return [
    given !== '' && storeUrl === '' && 'DATABASE_URL is not read: set STORE_URL to it.',
    inMemory &&
      config.environment === 'production' &&
      'STORE_URL is not set: all records are lost when this process ends.',
    inMemory && uploadDir !== '' && 'UPLOAD_DIR keeps no files without STORE_URL.',
    !inMemory &&
      uploadDir === '' &&
      'UPLOAD_DIR is not set: files are lost when this process ends.',
  ].filter((warning) => warning !== false);
}

/** Returns the warning of a service without any account. */
export function findMissingAccounts({ requireAuth }: Pick<Config, 'requireAuth'>): string[] {
  if (requireAuth === 'none') return [];
  return ['There is no account, so that nobody can log in: add one with "accounts add".'];
}

/** Settings whose defaults suit development only. */
function findOpenSettings({ jwtSecret, requireAuth, demoData }: Config): readonly string[] {
  return [
    jwtSecret === '' && 'JWT_SECRET is not set: tokens become invalid when this process ends.',
    requireAuth === 'none' && 'REQUIRE_AUTH is none: everybody may change data.',
    demoData && 'DEMO_DATA is true: a new store is filled with demo posts.',
  ].filter((warning) => warning !== false);
}
