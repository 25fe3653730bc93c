/** An engine over a small store, without HTTP: for tests of what GraphQL does by itself. */

import { type Config, readConfig } from '../../dist/config.js';
import { createAddComment, createTopic } from '../../dist/domain/comments.js';
import { createIdSource } from '../../dist/domain/ids.js';
import { toReader } from '../../dist/domain/readers.js';
import { createEngine } from '../../dist/graphql/engine.js';
import { type GraphqlError, toErrors } from '../../dist/graphql/errors.js';
import { decodeRequest } from '../../dist/graphql/http/messages.js';
import type { RequestContext } from '../../dist/graphql/context.js';
import type { GraphqlRequest } from '../../dist/graphql/documents/documents.js';
import type { TrustedDocuments } from '../../dist/graphql/documents/trusted-documents.js';
import type { Log, LogFacts } from '../../dist/log.js';
import type { MaybePromise } from '../../dist/maybe-promise.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { createScheduler } from '../../dist/scheduler.js';
import { createMemoryStore } from '../../dist/store/memory.js';
import type { PlacedComment } from '../../dist/store/comments-after.js';
import type { Account, Author, Comment, Post } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { unsigned } from './anyone.ts';
import { unweighed } from './topic.ts';

/** What a client gets. Without `data` the operation did not run. */
export interface GraphqlResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphqlError[];
}

export type TestGraphql = ReturnType<typeof startGraphql>;

export interface TestGraphqlOptions {
  readonly posts?: number;
  readonly authors?: number;
  /** Of each post. */
  readonly comments?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** In the place of limits that are no settings. */
  readonly constants?: Partial<Config> | undefined;
  readonly viewer?: () => MaybePromise<Account | undefined>;
  readonly trustedDocuments?: TrustedDocuments;
  readonly log?: Log;
  /** Values that may wait for a subscriber of the topic. */
  readonly queueMax?: number;
  /** Puts something around the store. */
  readonly wrap?: (store: Store) => Store;
}

const createId = createIdSource(() => new Date());
const createdAt = '2026-01-05T09:00:00';

export function startGraphql(options: TestGraphqlOptions = {}) {
  const authors = times(options.authors ?? 2, (number): Author => {
    return { id: createId(), name: `Author ${number}`, email: `a${number}@example.org`, createdAt };
  });
  const posts = times(options.posts ?? 3, (number): Post => {
    const authorId = authors[number % authors.length]?.id ?? null;
    const id = createId();
    const draft = { status: 'DRAFT', publishedAt: null } as const;
    return { id, title: `Post ${number}`, content: 'text', createdAt, authorId, ...draft };
  });
  const comments = posts.flatMap(({ id: postId }) =>
    times(options.comments ?? 1, (number): Comment => {
      return { id: createId(), content: `Comment ${number}`, createdAt, postId, ...unsigned };
    }),
  );
  const initial = { authors, posts, comments, accounts: [], todos: [], articles: [] };
  const config = { ...readConfig(options.env ?? {}), ...options.constants };
  const scheduler = createScheduler();
  const memory = createMemoryStore({
    createId,
    now: () => createdAt,
    initial,
    bytesMax: config.memoryStoreBytesMax,
    run: scheduler.run,
  });
  const store = options.wrap?.(memory) ?? memory;
  const topic = createTopic<PlacedComment>({
    ...unweighed,
    queueMax: options.queueMax ?? 100,
    follow: store.comments.watch,
  });
  const pool = new MemoryPool(config.requestMemoryBytesMax);
  const logged: (LogFacts & { readonly event: string })[] = [];
  const note: Log = (_level, event, facts) => void logged.push({ ...facts, event });
  const log = options.log ?? note;
  /** Adds a comment as REST would. */
  const addComment = createAddComment(store);
  const hasOwners = config.requireAuth === 'owners' || config.requireAuth === 'members';
  const engine = createEngine({
    store,
    addComment,
    commentAdded: topic,
    log,
    writesNeedToken: config.requireAuth !== 'none',
    commentsNeedToken: config.requireAuth !== 'none',
    asReader: (account) =>
      hasOwners ? toReader(account, { hasOwners, isModerated: false }) : undefined,
    hasOwners,
    hasReaders: hasOwners,
    readsNeedToken: config.requireAuth === 'members',
    trustedDocuments: options.trustedDocuments,
    pool,
    scheduler,
    config,
  });
  const parts = { store, topic, config, pool, logged, addComment };
  const viewer = options.viewer ?? ((): undefined => undefined);
  const openContext = (): RequestContext => engine.createContext({ requestId: 'r-1', viewer });
  /** The codes of the errors for which a request cannot run; none if it can. */
  const refusalOf = (request: GraphqlRequest): readonly string[] => {
    try {
      engine.prepare(request, 'r-1');
      return [];
    } catch (error) {
      return codesOf({ errors: toErrors(error, log, 'r-1') });
    }
  };
  /** Prepares and executes; a refused request gives its errors. */
  const run = async (query: string, variables?: unknown): Promise<GraphqlResult> => {
    try {
      const operation = engine.prepare(decodeRequest({ query, variables }), 'r-1');
      const { json } = await engine.execute(operation, openContext());
      return JSON.parse(json) as GraphqlResult;
    } catch (error) {
      return { errors: toErrors(error, log, 'r-1') };
    }
  };
  return { ...parts, engine, /** Newest last. */ posts, authors, openContext, refusalOf, run };
}

/** What can be read of a result without knowing its selection. */
export function dataOf(result: GraphqlResult): Record<string, unknown> {
  if (result.errors !== undefined) throw new Error(JSON.stringify(result.errors));
  return result.data ?? {};
}

/** The codes of a result's errors. */
export function codesOf(result: GraphqlResult): readonly string[] {
  return (result.errors ?? []).map((error) => error.extensions.code);
}

function times<T>(count: number, make: (number: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => make(index + 1));
}
