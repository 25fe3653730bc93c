/**
 * The table of settings, and `readConfig`, which turns them into a frozen Config or throws one
 * error that lists every fault. docs/settings.md repeats the table. A setting is an environment
 * variable; an empty one counts as absent. Limits are on by default.
 */

import { readFileSync } from 'node:fs';
import { toReason } from './errors.ts';
import * as setting from './settings.ts';
import { MiB } from './settings.ts';

/**
 * Memory of a connection that is not counted elsewhere, in bytes: its objects, a head of 16 KiB,
 * and a body and a response of up to 16 KiB each; or a message of a WebSocket that is incomplete.
 */
export const connectionBytes = 98_304;

/** Memory of the parsed GraphQL documents that are cached: hundreds of usual ones. */
export const documentsBytesMax = 24 * MiB;
/** Memory of the texts of persisted queries. */
export const persistedTextsBytesMax = 2 * MiB;

/** Limits that need no setting. They are part of a Config, so that a test can cross them. */
const constants = {
  /** Tokens of a GraphQL document; twice as many pairs of fields to merge. */
  graphqlTokensMax: 2_000,
  /** Levels of fields in a GraphQL operation, with fragments spread. */
  graphqlDepthMax: 20,
  /** Stored files, whatever their sizes. */
  storedFilesMax: 10_000,
  /** Between two pings or keep-alives; a WebSocket that misses one ping is ended. */
  wsPingSeconds: 15,
} as const;

/** In the order in which docs/settings.md lists them. */
export const settings = {
  // Listening
  host: setting.text('HOST', '', { meaning: 'Address to listen on; empty: all.' }),
  port: setting.integer('PORT', 8080, {
    max: 65_535,
    meaning: 'Port to listen on; 0: a free one.',
  }),
  adminPort: setting.optionalPort('ADMIN_PORT', {
    meaning: 'A second port, for health checks and metrics; empty: no metrics.',
  }),
  publicUrl: setting.text('PUBLIC_URL', '', {
    check: setting.baseUrl,
    meaning: 'Base URL of absolute links; empty: scheme and host of the request.',
  }),
  allowedOrigins: setting.list('ALLOWED_ORIGINS', 'origins, by comma', {
    meaning:
      'Other origins whose pages may send requests and read responses; `*`: all. Empty: none.',
    check: setting.origin,
  }),
  trustedProxies: setting.list('TRUSTED_PROXIES', 'networks, by comma', {
    meaning:
      'Proxies whose `Forwarded` or `X-Forwarded-For` is used for the address of the client.',
    check: setting.network,
  }),
  // Logging
  logRequests: setting.choice('LOG_REQUESTS', 'errors', {
    words: ['none', 'errors', 'all'],
    meaning:
      'Requests to log; `errors`: of a status from 500, or whose response began after a second.',
  }),
  logFormat: setting.choice('LOG_FORMAT', 'auto', {
    words: ['auto', 'json', 'pretty'],
    meaning: '`auto`: `pretty` on a terminal, JSON lines elsewhere.',
  }),
  // Records and files
  environment: setting.text('NODE_ENV', '', { meaning: '`production`: no demo accounts.' }),
  demoData: setting.flag('DEMO_DATA', true, {
    meaning: 'Creates demo authors, posts, comments and accounts.',
  }),
  memoryStoreBytesMax: setting.bytes('MEMORY_STORE_BYTES_MAX', 1_024 * MiB, {
    share: 5,
    min: MiB,
    meaning:
      'Maximum size of records in memory; beyond it 507. Empty: a fifth of the heap, up to 1 GiB.',
  }),
  storeUrl: setting.text('STORE_URL', 'URL', {
    meaning: 'Where records are stored: `sqlite:///path` or `postgres://…`; empty: in memory.',
    check: setting.matching(
      /^(?:memory:|sqlite:\/\/\/.+|postgres(?:ql)?:\/\/.+)$/,
      'must be memory:, sqlite:///path/to/file or postgres://user@host/database',
    ),
  }),
  storeListenUrl: setting.text('STORE_LISTEN_URL', 'URL', {
    meaning: 'A direct connection to PostgreSQL for LISTEN, if `STORE_URL` is a pooler.',
    check: setting.matching(/^postgres(?:ql)?:\/\/.+$/, 'must be postgres://user@host/database'),
  }),
  storeConnectionsMax: setting.integer('STORE_CONNECTIONS_MAX', 10, {
    min: 2,
    meaning:
      'Maximum number of connections to PostgreSQL, half of them for writes, besides the one for ' +
      'LISTEN.',
  }),
  storeTimeoutSeconds: setting.seconds('STORE_TIMEOUT_SECONDS', 5, {
    meaning: 'Maximum duration of a statement on PostgreSQL; beyond it 503.',
  }),
  uploadDir: setting.text('UPLOAD_DIR', 'folder', {
    meaning:
      'Where uploads are stored: permanently with a database; empty: until the process ends.',
  }),
  // Accounts and tokens
  jwtSecret: setting.text('JWT_SECRET', '32 bytes or more', {
    meaning: 'Key that signs access tokens; empty: a random one at each start.',
    check: setting.secret,
  }),
  jwtSecretPrevious: setting.text('JWT_SECRET_PREVIOUS', '32 bytes or more', {
    meaning: 'A previous key, whose tokens are still accepted.',
    check: setting.secret,
  }),
  tokenTtlSeconds: setting.seconds('TOKEN_TTL_SECONDS', 60, {
    max: 31_536_000,
    meaning: 'Lifetime of an access token.',
  }),
  sessionSecondsMax: setting.seconds('SESSION_SECONDS_MAX', 28_800, {
    max: 31_536_000,
    meaning: 'Time since the login in which its token can be refreshed.',
  }),
  usersFile: setting.text('USERS_FILE', 'file', {
    meaning:
      'JSON array of `{username, email, roles, passwordHash}`, in place of the demo accounts.',
  }),
  requireAuth: setting.choice('REQUIRE_AUTH', 'none', {
    words: ['none', 'writes', 'owners', 'members'],
    meaning:
      '`writes`: changes need a token; `owners`: of the author; `members`: reading needs one too.',
  }),
  comments: setting.choice('COMMENTS', 'accounts', {
    words: ['accounts', 'open', 'moderated'],
    meaning:
      'Who comments: as `REQUIRE_AUTH` says; `open`: everybody; `moderated`: so, when approved.',
  }),
  commentsPerMinuteMax: setting.integer('COMMENTS_PER_MINUTE_MAX', 30, {
    min: 1,
    unit: 'per minute',
    meaning: 'Maximum number of comments without a token from one address; beyond it 429.',
  }),
  loginFailuresMax: setting.integer('LOGIN_FAILURES_MAX', 10, {
    min: 1,
    unit: 'per account and minute',
    meaning: 'Maximum number of failed logins from one address; beyond it 429.',
  }),
  // HTTP limits
  connectionsMax: setting.integer('CONNECTIONS_MAX', 10_000, {
    share: 8 * connectionBytes,
    min: 1,
    meaning: 'Maximum number of connections; WebSockets: half. Empty: by the heap, at most 10,000.',
  }),
  bodyBytesMax: setting.bytes('BODY_BYTES_MAX', MiB, {
    min: 1024,
    meaning: 'Maximum size of a JSON body, and of an article.',
  }),
  idleTimeoutSeconds: setting.seconds('IDLE_TIMEOUT_SECONDS', 30, {
    meaning: 'Time that a request or response may stand still if it moved enough before.',
  }),
  keepAliveSeconds: setting.seconds('KEEP_ALIVE_SECONDS', 5, {
    meaning: 'Maximum idle time between two requests of a connection.',
  }),
  drainDelaySeconds: setting.integer('DRAIN_DELAY_SECONDS', 0, {
    max: 3_600,
    unit: 'seconds',
    meaning: 'Time after SIGTERM in which requests are still served and `/readyz` answers 503.',
  }),
  responseCacheBytesMax: setting.bytes('RESPONSE_CACHE_BYTES_MAX', 16 * MiB, {
    meaning: 'Maximum size of the response cache; 0: no cache.',
  }),
  requestMemoryBytesMax: setting.bytes('REQUEST_MEMORY_BYTES_MAX', 128 * MiB, {
    share: 8,
    min: MiB,
    meaning: 'Maximum memory of requests in progress. Empty: an eighth of the heap, up to 128 MiB.',
  }),
  // Uploads
  uploadBytesMax: setting.bytes('UPLOAD_BYTES_MAX', 4_096 * MiB, {
    min: 1024,
    meaning: 'Maximum size of a multipart body.',
  }),
  storedBytesMax: setting.bytes('STORED_BYTES_MAX', 65_536 * MiB, {
    min: 1024,
    meaning: 'Maximum size of all stored files together; beyond it 507.',
  }),
  // GraphQL
  graphqlObjectsMax: setting.integer('GRAPHQL_OBJECTS_MAX', 25_000, {
    min: 100,
    meaning: 'Maximum number of objects in the result of a request, batch or event.',
  }),
  trustedDocuments: setting.text('TRUSTED_DOCUMENTS', 'file', {
    meaning: 'JSON object of hash → document; if set, only these documents can run.',
  }),
} as const satisfies Record<string, setting.Setting<unknown>>;

/** The value of every setting under its key in the table, and the constants. */
export type Config = Values<typeof settings> & Readonly<Record<keyof typeof constants, number>>;

type Values<S extends Readonly<Record<string, setting.Setting<unknown>>>> = {
  readonly [K in keyof S]: Exclude<ReturnType<S[K]['parse']>, Error>;
};

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
export function readConfig(given: NodeJS.ProcessEnv, memoryBytes = Infinity): Config {
  const environment = { ...given };
  const faults = secretSettings.flatMap(({ name }) => readSecretFile(environment, name));
  const values = Object.entries<setting.Setting<unknown>>(settings).map(([key, each]) => {
    const value = each.parse(environment[each.name] || each.fallback, memoryBytes);
    if (value instanceof Error) faults.push(`${each.name} ${value.message}.`);
    return [key, value] as const;
  });
  // Each value was returned by `parse`.
  const read = Object.fromEntries(values) as Values<typeof settings>;
  // What settings say together is asked of those that are right by themselves.
  if (faults.length === 0) faults.push(...secretFaults(read), ...commentsFaults(read));
  if (faults.length > 0) throw new ConfigError(faults.join('\n'));
  return Object.freeze({ ...constants, ...read });
}

/** A setting as it is now: the file that `NAME_FILE` names may have a new password. */
export function readSecret(given: NodeJS.ProcessEnv, name: string): string {
  const environment = { ...given };
  readSecretFile(environment, name);
  return environment[name] ?? '';
}

/** Sets NAME to the content of the file that `NAME_FILE` names. Returns the faults. */
function readSecretFile(environment: NodeJS.ProcessEnv, name: string): string[] {
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

/** R48: what would change nothing, or contradict, is a mistake. */
function commentsFaults({ comments, requireAuth }: Values<typeof settings>): readonly string[] {
  if (comments === 'accounts' || requireAuth === 'writes' || requireAuth === 'owners') return [];
  const reason = { none: 'everybody comments', members: 'nobody reads without a token' };
  const rule = `COMMENTS must be accounts where REQUIRE_AUTH is ${requireAuth}`;
  return [`${rule}: ${reason[requireAuth]}; writes and owners go with it.`];
}

/** A previous key alone, or equal to the current one, is a mistake: valid tokens would end. */
function secretFaults(values: Values<typeof settings>): readonly string[] {
  const { jwtSecret, jwtSecretPrevious } = values;
  if (jwtSecretPrevious === '') return [];
  if (jwtSecret === '') return ['JWT_SECRET_PREVIOUS needs JWT_SECRET beside it.'];
  if (jwtSecret === jwtSecretPrevious) return ['JWT_SECRET_PREVIOUS must differ from JWT_SECRET.'];
  return [];
}
