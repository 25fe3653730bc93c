/** Composition root: settings in, a listener for `node:http` out. Reads like a wiring diagram. */

import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { loadAccounts } from './auth/accounts.ts';
import { type Bearer, createBearer } from './auth/bearer.ts';
import { createTokens } from './auth/jwt.ts';
import { createLoginLimiter } from './auth/login-limiter.ts';
import { createLogin, type Login } from './auth/login.ts';
import { createPasswordChecker } from './auth/password.ts';
import type { Config } from './config.ts';
import { createAddComment } from './domain/comments.ts';
import { createIdSource } from './domain/ids.ts';
import { createLocalClock } from './domain/local-date-time.ts';
import { createTopic, type Topic } from './domain/topic.ts';
import { readTrustedDocuments } from './graphql/documents/trusted-documents.ts';
import { createAccountHandlers, createWritingGuard } from './handlers/accounts.ts';
import { createArticleHandlers } from './handlers/articles.ts';
import { createCommentHandlers } from './handlers/comments.ts';
import { createFileHandlers } from './handlers/files.ts';
import { createGraphqlHandlers } from './handlers/graphql.ts';
import { createPageHandlers } from './handlers/pages.ts';
import { createPostHandlers } from './handlers/posts.ts';
import { createHealthHandlers } from './handlers/health.ts';
import { createAdminRoutes, createRoutes, type Route } from './handlers/routes.ts';
import { createTodoHandlers } from './handlers/todos.ts';
import { createAnswerCache } from './http/answer-cache.ts';
import { createListReply } from './http/json-list.ts';
import { createCors } from './http/cors.ts';
import { createListener, type Listener, type ListenerDeps } from './http/server/listener.ts';
import { createMetrics, type Metrics } from './http/metrics.ts';
import type { Observe } from './http/server/observe.ts';
import { createRequestLog, type RequestLogDeps } from './http/server/request-log.ts';
import type { UpgradeListener } from './http/server/server.ts';
import { createCountedLog, type CountedLog, type Log } from './log.ts';
import { createMemoryPool, type MemoryPool } from './memory-pool.ts';
import { createRouter } from './router.ts';
import { openUploads } from './store/files/open.ts';
import type { Account, Comment } from './store/model.ts';
import { openStore } from './store/open.ts';
import { createReader } from './store/reading.ts';
import { initialData } from './store/seed.ts';
import type { Store } from './store/store.ts';
import type { Run } from './store/files/run-folder.ts';

/** What a test, or another host, may put in the place of the real thing. */
export interface AppDeps {
  readonly log: Log;
  /** For requests where all are logged: it drops none beyond a number in a second. */
  readonly requestLog?: Log;
  /** Memory that the process holds. */
  readonly residentBytes?: () => number;
  readonly now: () => Date;
  /** Milliseconds of a clock that only goes forward, whatever happens to `now`. */
  readonly monotonicNow: () => number;
  /** Whose folder of uploads is whose. */
  readonly run: Run;
}

export interface App {
  readonly listener: Listener;
  /** For ADMIN_PORT. */
  readonly adminListener: Listener;
  readonly pool: MemoryPool;
  readonly upgrade: UpgradeListener;
  /** From now on not ready, though everything is served. */
  announceStop(): void;
  /** Ends event streams, closes every WebSocket with 1001 and waits for them. */
  endSockets(): Promise<void>;
  /** Removes the run's folder, closes the store. Call it once nothing is in flight. */
  close(): Promise<void>;
}

/** Comments that wait to be made events inside the process; sockets have their own bounds. */
const commentQueueMax = 4_096;
/** Their part of all bytes that may wait. */
const commentShare = 1 / 8;
/** What a comment takes beside its text, about. */
const commentBytes = 512;

/** Of the memory for answers; texts of posts and articles have the rest. */
const answerShare = 1 / 2;

/** Logins that wait for the two that are being checked: the last of them for half a second. */
const loginsWaitingMax = 16;

/** Where the build puts the pages. */
const folderOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export async function createApp(config: Config, deps: AppDeps): Promise<App> {
  const { log, now, run, monotonicNow } = deps;
  const createId = createIdSource(now);
  const accounts = await loadAccounts(config);
  const pool = createPool(config);
  const metrics = config.adminPort === undefined ? undefined : startMetrics({ ...deps, pool });
  const security = createSecurity(deps, metrics);
  const shared = { log, config, security, pool };
  const store = await openRecords(config, { createId, now, log, accounts });
  const answers = createAnswerCache({
    bytesMax: config.answerCacheBytesMax * answerShare,
    read: createReader(store, randomBytes(9).toString('base64url')),
  });
  const listReply = createListReply(answers, pool);
  const added = createCommentTopic(config.waitingBytesMax * commentShare);
  const addComment = createAddComment(store, (comment) => added.publish(comment));

  const uploads = await openUploads({
    directory: config.uploadDir,
    storedFilesMax: config.storedFilesMax,
    run,
    openIndex: store.openFileIndex,
    createName: createId,
    log,
  });

  const { bearer, login } = createAccess(store, config, { ...deps, accounts, security });
  const viewer = bearer.authenticateIfSent;
  const graphql = createGraphqlHandlers({
    ...shared,
    store,
    addComment,
    commentAdded: added,
    uploads,
    answers,
    createUuid: createId,
    viewerOf: viewer,
    writesNeedToken: config.requireAuth === 'writes',
    trustedDocuments: await readTrustedDocuments(config.trustedDocuments),
  });

  const health = createHealthHandlers({ store, monotonicNow });
  const routes = createRoutes({
    graphql,
    posts: createPostHandlers({ store, viewer, answers, listReply, config }),
    comments: createCommentHandlers({ store, addComment, answers, listReply, config }),
    accounts: createAccountHandlers({ login, bearer, config }),
    files: createFileHandlers({ uploads, config, log, createUuid: createId }),
    todos: createTodoHandlers({ store, answers, listReply, config }),
    articles: createArticleHandlers({ store, answers, listReply, config }),
    graphqlUi: createPageHandlers({ root: '/graphql-ui/', folder: folderOf('graphql-ui') }),
    reference: createPageHandlers({ root: '/docs/', folder: folderOf('reference') }),
    health,
    writing: createWritingGuard({ bearer, config }),
  });
  const observe = createObserve({ config, security, log: deps.requestLog ?? log }, metrics);
  return {
    listener: listenTo(routes, { ...shared, observe, cors: createCors(config.allowedOrigins) }),
    adminListener: listenTo(createAdminRoutes({ health, metrics: metrics?.handler }), shared),
    pool,
    upgrade: graphql.upgrade,
    announceStop: () => health.announceStop(),
    endSockets: () => graphql.close(),
    async close() {
      metrics?.close();
      await uploads.close();
      await store.close();
    },
  };
}

/** What was refused is logged, and counted where metrics are asked for. */
function createSecurity({ log, monotonicNow }: AppDeps, metrics: Metrics | undefined): CountedLog {
  const report = createCountedLog(log, monotonicNow);
  if (metrics === undefined) return report;
  return (event, facts) => {
    metrics.countEvent(event);
    report(event, facts);
  };
}

function createObserve(deps: RequestLogDeps, metrics: Metrics | undefined): Observe {
  const observe = createRequestLog(deps);
  if (metrics === undefined) return observe;
  return (finished) => {
    metrics.observe(finished);
    observe(finished);
  };
}

function startMetrics({ pool, residentBytes }: Watched): Metrics {
  const metrics = createMetrics();
  metrics.gauge('inkwell_waiting_bytes', 'Bytes that wait in memory.', () => pool.bytes);
  if (residentBytes !== undefined) {
    metrics.gauge('inkwell_resident_memory_bytes', 'Resident memory.', residentBytes);
  }
  return metrics;
}

type Watched = Pick<App, 'pool'> & Pick<AppDeps, 'residentBytes'>;

function listenTo(
  routes: readonly Route[],
  deps: Pick<ListenerDeps, 'log' | 'pool' | 'cors' | 'observe'>,
): Listener {
  const idPrefix = randomBytes(6).toString('base64url');
  return createListener({ ...createRouter(routes), ...deps, idPrefix });
}

interface AccessDeps extends Pick<AppDeps, 'log' | 'now' | 'monotonicNow'> {
  readonly security: CountedLog;
  readonly accounts: readonly Account[];
}

function createPool({ waitingBytesMax }: Config): MemoryPool {
  return createMemoryPool(waitingBytesMax * (1 - commentShare));
}

function createCommentTopic(queueBytesMax: number): Topic<Comment> {
  return createTopic({
    queueMax: commentQueueMax,
    queueBytesMax,
    bytesOf: ({ content }) => commentBytes + content.length * 2,
  });
}

/** Who may do what (Spec §5). */
function createAccess(
  store: Store,
  config: Config,
  { log, now, monotonicNow, accounts, security }: AccessDeps,
): { readonly bearer: Bearer; readonly login: Login } {
  const tokens = createTokens({
    secrets: getSecrets(config, log),
    ttlSeconds: config.tokenTtlSeconds,
    now,
  });
  const bearer = createBearer({ tokens, store });
  const login = createLogin({
    store,
    security,
    tokens,
    limiter: createLoginLimiter({ failuresMax: config.loginFailuresMax, now: monotonicNow }),
    checkPassword: createPasswordChecker({
      queueMax: loginsWaitingMax,
      decoyHash: accounts[0]?.passwordHash,
    }),
  });
  return { bearer, login };
}

/** R20: without a secret of the deployer's the tokens of this run end with it. */
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

interface RecordDeps extends Pick<AppDeps, 'log' | 'now'> {
  readonly createId: () => string;
  readonly accounts: readonly Account[];
}

function openRecords(config: Config, deps: RecordDeps): Promise<Store> {
  const { createId, now, log, accounts } = deps;
  return openStore(config.storeUrl, {
    createId,
    now: createLocalClock(now),
    initial: initialData(accounts, config.demoData),
    bytesMax: config.memoryStoreBytesMax,
    log,
    listenUrl: config.storeListenUrl,
    connectionsMax: config.storeConnectionsMax,
    timeoutSeconds: config.storeTimeoutSeconds,
  });
}
