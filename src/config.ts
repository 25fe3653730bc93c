/**
 * The table of settings (limits are in config-limits.ts), and `readConfig`, which turns them into a
 * frozen Config or throws one error that lists every fault. docs/settings.md repeats the table. A
 * setting is an environment variable; an empty one counts as absent. Limits are on by default.
 */

import { readFileSync } from 'node:fs';
import { limitSettings } from './config-limits.ts';
import { toReason } from './errors.ts';
import {
  adminPort,
  baseUrl,
  choice,
  flag,
  integer,
  listenUrl,
  list,
  MiB,
  network,
  origin,
  readSettings,
  seconds,
  secret,
  type Setting,
  type SettingValues,
  shareOfMemory,
  storeUrl,
  text,
} from './settings.ts';

/** In the order in which docs/settings.md lists them. */
export const settings = {
  // Listening
  host: text('HOST', { meaning: 'Address to listen on; empty: all addresses.' }),
  port: integer('PORT', { fallback: 8080, max: 65_535, meaning: 'Port to listen on; 0: any.' }),
  adminPort: adminPort('ADMIN_PORT', {
    meaning: 'One more port, for health and metrics, or `main`: metrics on `PORT`. Empty: none.',
  }),
  publicUrl: baseUrl('PUBLIC_URL', {
    meaning: 'Base URL in absolute links; empty: scheme and host of the request.',
  }),
  allowedOrigins: list('ALLOWED_ORIGINS', {
    unit: 'origins, by comma',
    meaning: 'Foreign origins whose pages may send and read everything; `*`: all. Empty: none.',
    check: origin,
  }),
  trustedProxies: list('TRUSTED_PROXIES', {
    unit: 'networks, by comma',
    meaning: 'Proxies that are believed who their client is; it counts for failed logins.',
    check: network,
  }),
  // Logging
  logRequests: choice('LOG_REQUESTS', {
    words: ['none', 'errors', 'all'],
    fallback: 'errors',
    meaning: '`errors`: statuses from 500 on, and responses that took over a second.',
  }),
  logLevel: choice('LOG_LEVEL', {
    words: ['info', 'warn', 'error'],
    fallback: 'info',
    meaning: 'What is less than this is not logged.',
  }),
  logFormat: choice('LOG_FORMAT', {
    words: ['auto', 'json', 'pretty'],
    fallback: 'auto',
    meaning: '`auto`: `pretty` at a terminal, JSON lines elsewhere.',
  }),
  // Records and files
  environment: text('NODE_ENV', { meaning: '`production`: there are no demo accounts.' }),
  demoData: flag('DEMO_DATA', {
    fallback: true,
    meaning: 'Demo authors, posts, comments and accounts.',
  }),
  memoryStoreBytesMax: shareOfMemory('MEMORY_STORE_BYTES_MAX', {
    share: 5,
    min: MiB,
    fallbackMax: 1_024 * MiB,
    meaning: 'Records kept in memory; beyond: 507. Empty: a fifth of the heap, 1 GiB at most.',
  }),
  storeUrl: text('STORE_URL', {
    unit: 'URL',
    meaning: '`sqlite:///path` or `postgres://…`: where records are kept; empty: in memory.',
    check: storeUrl,
  }),
  storeListenUrl: text('STORE_LISTEN_URL', {
    unit: 'URL',
    meaning: 'PostgreSQL past its pooler, for LISTEN alone; empty: `STORE_URL`.',
    check: listenUrl,
  }),
  storeConnectionsMax: integer('STORE_CONNECTIONS_MAX', {
    fallback: 10,
    min: 1,
    meaning: 'Connections to PostgreSQL; one more listens.',
  }),
  storeTimeoutSeconds: seconds('STORE_TIMEOUT_SECONDS', {
    fallback: 5,
    meaning: 'One statement on PostgreSQL; beyond: 503.',
  }),
  uploadDir: text('UPLOAD_DIR', {
    unit: 'folder',
    meaning: 'Where files are stored: to stay, with a durable `STORE_URL`; empty: for the run.',
  }),
  // Accounts and tokens
  jwtSecret: text('JWT_SECRET', {
    unit: '32 bytes or more',
    meaning: 'Key that signs tokens; empty: a random one for this run.',
    check: secret,
  }),
  jwtSecretPrevious: text('JWT_SECRET_PREVIOUS', {
    unit: '32 bytes or more',
    meaning: 'A second key, whose tokens are good too; it signs none.',
    check: secret,
  }),
  tokenTtlSeconds: seconds('TOKEN_TTL_SECONDS', {
    fallback: 60,
    max: 31_536_000,
    meaning: 'How long a token lives.',
  }),
  usersFile: text('USERS_FILE', {
    unit: 'file',
    meaning: 'JSON array of `{username, email, roles, passwordHash}` instead of demo accounts.',
  }),
  requireAuth: choice('REQUIRE_AUTH', {
    words: ['none', 'writes'],
    fallback: 'none',
    meaning: '`writes`: whatever changes data needs a token.',
  }),
  loginFailuresMax: integer('LOGIN_FAILURES_MAX', {
    fallback: 10,
    min: 1,
    unit: 'per account and minute',
    meaning: 'Failed logins from one address; beyond: 429.',
  }),
  ...limitSettings,
} as const satisfies Record<string, Setting<unknown>>;

/** The value of every setting under its key in the table. */
export type Config = SettingValues<typeof settings>;

/** Lists every faulty setting, one line each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Settings that can be read from a file named by `NAME_FILE`, as with Docker and Kubernetes. */
export const secretSettings = [
  settings.storeUrl,
  settings.storeListenUrl,
  settings.jwtSecret,
  settings.jwtSecretPrevious,
];

/**
 * Reads every setting. Throws one ConfigError that lists all faults. `memoryBytes` is the memory
 * that the process may use; some defaults are a share of it.
 */
export function readConfig(
  given: Readonly<Record<string, string | undefined>>,
  memoryBytes = Infinity,
): Config {
  const environment = { ...given };
  const fileFaults = secretSettings.flatMap(({ name }) => readSecretFile(environment, name));
  const { values, faults } = readSettings(settings, environment, memoryBytes);
  const all = [...fileFaults, ...faults, ...secretFaults(values)];
  if (all.length > 0) throw new ConfigError(all.join('\n'));
  return values;
}

/** Sets NAME to the content of the file that `NAME_FILE` names. Returns the faults. */
function readSecretFile(environment: Record<string, string | undefined>, name: string): string[] {
  const file = environment[`${name}_FILE`] ?? '';
  if (file === '') return [];
  if ((environment[name] ?? '') !== '') return [`${name}_FILE and ${name} exclude each other.`];
  try {
    environment[name] = readFileSync(file, 'utf8').trim();
    return [];
  } catch (error) {
    return [`${name}_FILE: ${toReason(error)}.`];
  }
}

/** A previous key alone, or equal to the current one, is a mistake: valid tokens would end. */
function secretFaults({ jwtSecret, jwtSecretPrevious }: Config): readonly string[] {
  if (jwtSecretPrevious === '') return [];
  if (jwtSecret === '') return ['JWT_SECRET_PREVIOUS needs JWT_SECRET beside it.'];
  if (jwtSecret === jwtSecretPrevious) return ['JWT_SECRET_PREVIOUS must differ from JWT_SECRET.'];
  return [];
}
