/** The GraphQL endpoint for subscribers on a real server, without the rest of the service. */

import { after, before, type TestContext } from 'node:test';
import type { Access } from '../../dist/auth/access.js';
import type { Config } from '../../dist/config.js';
import { AppError } from '../../dist/errors.js';
import { createHttpEndpoint } from '../../dist/graphql/endpoint.js';
import type { Engine } from '../../dist/graphql/engine.js';
import { createEventStreams } from '../../dist/graphql/http/sse.js';
import {
  createSubscriptions,
  type Subscriptions,
} from '../../dist/graphql/events/subscriptions.js';
import { createWebSocketEndpoint } from '../../dist/graphql/ws/upgrade.js';
import { createListener } from '../../dist/http/server/exchange.js';
import { type Handler, textResponse } from '../../dist/http/message.js';
import { HttpServer } from '../../dist/http/server/server.js';
import type { Log } from '../../dist/log.js';
import type { MemoryPool } from '../../dist/memory-pool.js';
import { createResponseCache } from '../../dist/records/response-cache.js';
import type { Store } from '../../dist/store/store.js';
import { anyone } from './anyone.ts';
import { announce } from './announce.ts';
import { startGraphql } from './graphql.ts';

export type GraphqlEndpoint = Awaited<ReturnType<typeof startEndpoint>>;

export interface EndpointOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** In the place of limits that are no settings. */
  readonly constants?: Partial<Config> | undefined;
  /** A wrapper around the real engine. */
  readonly wrap?: (engine: Engine) => Engine;
  /** Different subscriptions at a time. */
  readonly distinctMax?: number;
  /** What a subscription waits for before its response begins. */
  readonly ready?: () => Promise<unknown> | undefined;
  /** An account as it is now. */
  readonly currentOf?: Access['currentOf'];
}

/** One endpoint for all tests of a `describe`. */
export function useEndpoint(options: EndpointOptions = {}): () => GraphqlEndpoint {
  let endpoint: GraphqlEndpoint | undefined;
  before(async () => {
    endpoint = await startEndpoint({ after: () => undefined }, options);
  });
  after(() => endpoint?.stop());
  return () => {
    if (endpoint === undefined) throw new Error('the endpoint is not there yet');
    return endpoint;
  };
}

/** Work that waits for its turn until the test calls it. */
export function holdTurns() {
  const waiting: (() => void)[] = [];
  const run: Engine['scheduler']['run'] = (work) =>
    new Promise((resolve) => void waiting.push(() => resolve(work())));
  const wrap = (engine: Engine): Engine => ({ ...engine, scheduler: { ...engine.scheduler, run } });
  return { waiting, wrap };
}

/** Stops with the test that asked for it. */
export async function startEndpoint(
  context: Pick<TestContext, 'after'>,
  {
    env = {},
    constants,
    wrap = (engine) => engine,
    distinctMax = 1_000,
    ready,
    currentOf = (account) => account,
  }: EndpointOptions = {},
) {
  const logged: string[] = [];
  const log: Log = (_level, event) => void logged.push(event);
  const address = { HOST: '127.0.0.1', PORT: '0' };
  const graphql = startGraphql({ env: { ...address, ...env }, constants, log, queueMax: 1_000 });
  const { config, pool, addComment } = graphql;
  const engine = wrap(graphql.engine);
  const dropped: string[] = [];
  const metrics = {
    operation: () => undefined,
    graphqlError: () => undefined,
    responseFromCache: () => undefined,
    subscriberDropped: (reason: string) => void dropped.push(reason),
  };
  const facts = { log, pool, distinctMax, ready, metrics, currentOf };
  const subscriptions = createSubscriptions({
    engine,
    ...facts,
    store: graphql.store,
  });
  /** What an `Authorization` was seen with, in the order asked. */
  const authorizations: (string | undefined)[] = [];
  const viewerOf: Access['viewerOf'] = ({ header }) => {
    const authorization = header('authorization');
    authorizations.push(authorization);
    if (authorization === 'Bearer bad') throw new AppError('invalid_token', 'The token is bad.');
    return undefined;
  };
  const sockets = createWebSocketEndpoint({
    observer: { begin: () => undefined, end: () => undefined, openSession: () => () => undefined },
    engine,
    subscriptions,
    viewerOf,
    createUuid: () => 'test',
    log,
    config,
  });
  const streams = createEventStreams(subscriptions, config);
  const parts = { config, sockets, streams, engine, pool, subscriptions };
  const { port, stop } = await serve(context, { ...parts, log, store: graphql.store });
  context.after(stop);
  const postId = graphql.posts.at(-1)?.id ?? '';
  return {
    ...parts,
    port,
    stop,
    logged,
    store: graphql.store,
    /** Why subscribers were ended. */
    dropped,
    authorizations,
    /** The post that comments go to. */
    postId,
    /** Adds a comment as REST would. */
    comment: (content: string) => void addComment(anyone, { postId, content }),
  };
}

interface Parts extends Pick<GraphqlEndpoint, 'config' | 'sockets' | 'streams' | 'engine'> {
  readonly subscriptions: Subscriptions;
  readonly log: Log;
  readonly pool: MemoryPool;
  readonly store: Store;
}

/** A server whose one endpoint answers by events; beside it there is `/hello`. */
async function serve(
  context: object,
  parts: Parts,
): Promise<{ readonly port: number; readonly stop: () => Promise<void> }> {
  const { config, sockets, streams, engine, log, pool, subscriptions } = parts;
  const graphql = createHttpEndpoint({
    engine,
    streams,
    config,
    responses: createResponseCache({ store: parts.store, run: 'test', bytesMax: 0 }),
    viewerOf: () => undefined,
    writesNeedToken: false,
    uploads: undefined as never,
    createUuid: () => 'test',
  });
  const handler: Handler = (request) =>
    request.path === '/hello' ? textResponse(200, 'hello') : graphql.post(request);
  const listener = createListener({
    find: () => ({ kind: 'match', endpoint: { handler }, params: {} }),
    log,
    idPrefix: 'test',
    run: engine.scheduler.run,
  });
  const server = new HttpServer({
    listener,
    upgrade: sockets.upgrade,
    pool,
    config,
  });
  const { port } = await server.listen(config.port, config.host);
  const announceStop = announce(context, `http://127.0.0.1:${port}`);
  const close = (): Promise<void> => {
    announceStop();
    return server.close(async () => {
      streams.close();
      await sockets.close();
      subscriptions.close();
    });
  };
  let stopped: Promise<void> | undefined;
  return { port, stop: () => (stopped ??= close()) };
}
