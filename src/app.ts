/** Composition root: creates the listeners for `node:http` from the settings. */

import { randomBytes } from 'node:crypto';
import { loadAccounts } from './auth/accounts.ts';
import { createAccess } from './auth/access.ts';
import { createTokens } from './auth/jwt.ts';
import { createCommentLimiter } from './auth/comment-limiter.ts';
import { createChangePassword, createLogin, createLoginLimiter } from './auth/login.ts';
import { createPasswordChecker, createPasswordLine, hashPassword } from './auth/password.ts';
import { toPlace } from './auth/standing.ts';
import type { Config } from './config.ts';
import { createComments } from './domain/comments.ts';
import { createIdSource } from './domain/ids.ts';
import { createLocalClock } from './domain/local-date-time.ts';
import { readTrustedDocuments } from './graphql/documents/trusted-documents.ts';
import { createGraphqlHandlers } from './handlers/graphql.ts';
import { createHealthHandlers } from './handlers/health.ts';
import { createPages, loadPages } from './handlers/pages.ts';
import { createAdminRoutes, createRoutes, type Route } from './handlers/routes.ts';
import { createCors } from './http/origins.ts';
import { createListener, type ExchangeDeps, type Listener } from './http/server/exchange.ts';
import type { Log } from './log.ts';
import { adminPoolBytes, MemoryPool } from './memory-pool.ts';
import { createToListResponse } from './records/list-response.ts';
import { createRecordResponses } from './records/record-responses.ts';
import { createRecordTexts, createResponseCache } from './records/response-cache.ts';
import { createRouter } from './router.ts';
import { createScheduler, type RunInTurn } from './scheduler.ts';
import { openUploads } from './store/files/open.ts';
import type { Account } from './store/model.ts';
import { openStore } from './store/open.ts';
import { initialData } from './store/seed.ts';
import type { Store } from './store/store.ts';
import { createMonitor } from './watch/monitor.ts';
import type { LogSecurity, ProcessReadings, ServiceMetrics } from './watch/service-metrics.ts';

/** Dependencies that tests, or another host program, can replace. */
export interface AppDeps {
  readonly log: Log;
  /** Values that only this process can read, for the metrics. */
  readonly process?: ProcessReadings;
  readonly now: () => Date;
  /** Milliseconds of a monotonic clock: it does not jump when the system time is set. */
  readonly monotonicNow: () => number;
  /** A setting as it is now, if it may change. */
  readonly readSecret?: (name: string) => string;
}

export type App = Awaited<ReturnType<typeof createApp>>;

/** The share of REQUEST_MEMORY_BYTES_MAX for comments that are queued before they become events. */
const commentShare = 1 / 8;

/** The share of whole responses in RESPONSE_CACHE_BYTES_MAX; the rest is for texts of records. */
const responseShare = 1 / 2;

/** The memory of a page that is read from a database. */
const readPageBytes = 2 * 1024 * 1024;

/** Logins that may wait while two are checked; the last of them waits about half a second. */
const loginsWaitingMax = 16;

export async function createApp(config: Config, deps: AppDeps) {
  const createUuid = createIdSource(deps.now);
  const accounts = await loadAccounts(config);
  const queueBytesMax = config.requestMemoryBytesMax * commentShare;
  const pool = new MemoryPool(config.requestMemoryBytesMax - queueBytesMax);
  const scheduler = createScheduler();
  const { run } = scheduler;
  const readings = {
    pool,
    graphql: () => graphql.count(),
    uploads: () => uploads,
    isStoreUp: () => health.isStoreUp(),
  };
  const { observer, security, metrics, log } = createMonitor(config, { ...deps, ...readings });
  const store = await openStore(config.storeUrl, {
    createId: createUuid,
    now: createLocalClock(deps.now),
    initial: initialData(accounts, config.demoData),
    log,
    run,
    timed: metrics?.statement,
    bytesMax: config.memoryStoreBytesMax,
    listenUrl: config.storeListenUrl,
    readUrl: deps.readSecret,
    connectionsMax: config.storeConnectionsMax,
    timeoutSeconds: config.storeTimeoutSeconds,
  });
  const uploads = await openFiles(config, store, { createName: createUuid, log });
  const shared = { log, config, observer, pool, scheduler, run, metrics, store, createUuid };
  const logins = createLogins(config, store, { ...deps, accounts, security, metrics });
  const parts = {
    ...shared,
    uploads,
    ...createComments(store, { ...logins, queueBytesMax }),
    ...logins,
    ...createResponses(config, store, shared),
    trustedDocuments: await readTrustedDocuments(config.trustedDocuments),
  };
  const pages = createPages(new URL('.', import.meta.url));
  const hasUi = pages.graphqlUi !== undefined; // not if dist/inkwell.mjs stands alone
  const graphql = createGraphqlHandlers({ ...parts, hasUi });
  const health = createHealthHandlers(store, deps.monotonicNow);
  const routes = createRoutes({ ...parts, graphql, health, pages });
  const listener = listenTo(routes, { ...parts, cors: createCors(config.allowedOrigins) });
  return {
    listener,
    pool,
    /** Serves ADMIN_PORT. */
    adminListener: listenTo(createAdminRoutes(health, metrics?.handler), { log, run }),
    adminPool: new MemoryPool(adminPoolBytes),
    hasUi,
    hasAccounts: await hasAccounts(accounts, store),
    upgrade: graphql.upgrade,
    /** Loads what the start did not need, so that the program's folder can be replaced. */
    load: () => Promise.all([graphql.load(), loadPages(pages)]),
    /** From now on `/readyz` responds with 503. Requests are still served. */
    announceStop(): void {
      health.announceStop();
      listener.announceStop();
    },
    /** Ends event streams, closes every WebSocket with 1001 and waits for them. */
    endSockets: (): Promise<void> => graphql.close(),
    /** Removes the run's folder and closes the store. Call it when no request is in flight. */
    async close(): Promise<void> {
      metrics?.close();
      await uploads.close();
      await store.close();
    },
  };
}

/** Whether anybody can log in. */
async function hasAccounts(
  configured: readonly Account[],
  { storedAccounts }: Pick<Store, 'storedAccounts'>,
): Promise<boolean> {
  return configured.length > 0 || ((await storedAccounts?.list()) ?? []).length > 0;
}

/** The folder of uploaded files. */
function openFiles(
  config: Config,
  { openFileIndex, requests }: Store,
  deps: Pick<Parameters<typeof openUploads>[0], 'createName' | 'log'>,
) {
  return openUploads({
    directory: config.uploadDir,
    filesMax: config.storedFilesMax,
    bytesMax: config.storedBytesMax,
    openIndex: openFileIndex,
    requests,
    ...deps,
  });
}

/** The cache of responses, and how responses with records are made. */
function createResponses(
  { responseCacheBytesMax }: Config,
  store: Store,
  deps: { readonly pool: MemoryPool; readonly run: RunInTurn },
) {
  const run = randomBytes(9).toString('base64url');
  const { keepsObjects } = store;
  const bytesMax = responseCacheBytesMax * (keepsObjects ? responseShare : 1);
  const responses = createResponseCache({ store, run, bytesMax });
  const toListResponse = createToListResponse(deps, keepsObjects ? 0 : readPageBytes);
  const toText = createRecordTexts(responseCacheBytesMax - bytesMax);
  const records = createRecordResponses({ responses, toListResponse, toText, run: deps.run });
  return { responses, toListResponse, records };
}

function listenTo(
  routes: readonly Route[],
  deps: Pick<ExchangeDeps, 'log' | 'run' | 'cors' | 'observer'>,
): Listener {
  const idPrefix = randomBytes(6).toString('base64url');
  return createListener({ find: createRouter(routes), ...deps, idPrefix });
}

interface LoginsDeps extends Pick<AppDeps, 'log' | 'now' | 'monotonicNow'> {
  readonly security: LogSecurity;
  readonly metrics: ServiceMetrics | undefined;
  /** The accounts of USERS_FILE, or those of the demo. */
  readonly accounts: readonly Account[];
}

/** Who may do what (Spec §5). */
function createLogins(config: Config, { accounts, storedAccounts }: Store, deps: LoginsDeps) {
  const { requireAuth, comments, tokenTtlSeconds: ttlSeconds, sessionSecondsMax } = config;
  const secrets = getSecrets(config, deps.log);
  const tokens = createTokens({ secrets, ttlSeconds, sessionSecondsMax, now: deps.now });
  const { metrics, monotonicNow, security } = deps;
  const line = createPasswordLine(loginsWaitingMax);
  const checks = {
    security,
    limiter: createLoginLimiter(config.loginFailuresMax, monotonicNow),
    checkPassword: createPasswordChecker(line, deps.accounts[0]?.passwordHash),
  };
  return {
    login: createLogin({ ...checks, accounts, tokens }),
    changePassword: createChangePassword({
      ...checks,
      stored: storedAccounts,
      configured: new Set(deps.accounts.map(({ username }) => username)),
      toHash: (password, standing) =>
        line.run(() => hashPassword(password), toPlace(line, standing)),
    }),
    ...createAccess({ tokens, accounts, requireAuth, comments, metrics }),
    admitComment:
      comments === 'accounts'
        ? undefined
        : createCommentLimiter(config.commentsPerMinuteMax, { now: monotonicNow, security }),
  };
}

/** R20: without JWT_SECRET, the tokens are signed with a random key that ends with this process. */
function getSecrets(config: Config, log: Log): readonly [Buffer, ...Buffer[]] {
  const { jwtSecret, jwtSecretPrevious } = config;
  if (jwtSecret === '') {
    if (config.environment !== 'production')
      log('info', 'JWT_SECRET is not set: tokens are good until this run ends');
    return [randomBytes(32)];
  }
  const previous = jwtSecretPrevious === '' ? [] : [Buffer.from(jwtSecretPrevious)];
  return [Buffer.from(jwtSecret), ...previous];
}
