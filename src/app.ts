/** Composition root: creates the listeners for `node:http` from the settings. */

import { randomBytes } from 'node:crypto';
import { loadAccounts } from './auth/accounts.ts';
import { createAccess } from './auth/access.ts';
import { createTokens } from './auth/jwt.ts';
import { createLogin, createLoginLimiter } from './auth/login.ts';
import { createPasswordChecker } from './auth/password.ts';
import type { Config } from './config.ts';
import { createComments } from './domain/comments.ts';
import { createIdSource } from './domain/ids.ts';
import { createLocalClock } from './domain/local-date-time.ts';
import { readTrustedDocuments } from './graphql/documents/trusted-documents.ts';
import { createGraphqlHandlers } from './handlers/graphql.ts';
import { createHealthHandlers } from './handlers/health.ts';
import { createPages } from './handlers/pages.ts';
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
  /** Log of requests when LOG_REQUESTS is `all`: it has no limit on lines per second. */
  readonly requestLog?: Log;
  /** Values that only this process can read, for the metrics. */
  readonly process?: ProcessReadings;
  readonly now: () => Date;
  /** Milliseconds of a monotonic clock: it does not jump when the system time is set. */
  readonly monotonicNow: () => number;
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
  const { now, monotonicNow } = deps;
  const createUuid = createIdSource(now);
  const accounts = await loadAccounts(config);
  const pool = new MemoryPool(config.requestMemoryBytesMax * (1 - commentShare));
  const adminPool = new MemoryPool(adminPoolBytes);
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
    now: createLocalClock(now),
    initial: initialData(accounts, config.demoData),
    log,
    run,
    timed: metrics?.statement,
    bytesMax: config.memoryStoreBytesMax,
    listenUrl: config.storeListenUrl,
    connectionsMax: config.storeConnectionsMax,
    timeoutSeconds: config.storeTimeoutSeconds,
  });
  const uploads = await openFiles(config, store, { createName: createUuid, log });
  const shared = { log, config, observer, pool, scheduler, run, metrics, store, createUuid };
  const parts = {
    ...shared,
    uploads,
    ...createComments(store, config.requestMemoryBytesMax * commentShare),
    ...createLogins(config, store, { ...deps, accounts, security, metrics }),
    ...createResponses(config, store, shared),
    trustedDocuments: await readTrustedDocuments(config.trustedDocuments),
  };
  const pages = createPages(new URL('.', import.meta.url));
  /** False in a build without pages, such as dist/inkwell.mjs alone. */
  const hasUi = pages.graphqlUi !== undefined;
  const graphql = createGraphqlHandlers({ ...parts, hasUi });
  const health = createHealthHandlers(store, monotonicNow);
  const routes = createRoutes({ ...parts, graphql, health, pages });
  const listener = listenTo(routes, { ...parts, cors: createCors(config.allowedOrigins) });
  return {
    listener,
    pool,
    /** Serves ADMIN_PORT. */
    adminListener: listenTo(createAdminRoutes(health, metrics?.handler), { log, run }),
    adminPool,
    hasUi,
    upgrade: graphql.upgrade,
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
  const records = createRecordResponses({ responses, toListResponse, toText });
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
function createLogins(config: Config, { accounts }: Store, deps: LoginsDeps) {
  const { requireAuth, tokenTtlSeconds: ttlSeconds, sessionSecondsMax } = config;
  const secrets = getSecrets(config, deps.log);
  const tokens = createTokens({ secrets, ttlSeconds, sessionSecondsMax, now: deps.now });
  const login = createLogin({
    accounts,
    security: deps.security,
    tokens,
    limiter: createLoginLimiter(config.loginFailuresMax, deps.monotonicNow),
    checkPassword: createPasswordChecker(loginsWaitingMax, deps.accounts[0]?.passwordHash),
  });
  return { login, ...createAccess({ tokens, accounts, requireAuth, metrics: deps.metrics }) };
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
