/**
 * The GraphQL endpoint, over HTTP and over WebSocket. It is loaded with the first request that
 * needs it: `graphql` and `ws` take longer to load than the rest of the service.
 */

import type { Config } from '../config.ts';
import type { HttpReply, HttpRequest } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { createEngine, type EngineDeps } from './engine.ts';
import { type MultipartDeps, runMultipart } from './http/multipart.ts';
import { type RequestFacts, createRunner, type RunnerDeps, toRefusalReply } from './http/runner.ts';
import { createSchemaFile, type SchemaFile } from './http/schema-file.ts';
import { createEventStreams } from './http/sse.ts';
import { createSubscriptions } from './events/subscriptions.ts';
import { typeDefs } from './schema/type-defs.ts';
import {
  createWebSocketEndpoint,
  type WebSocketEndpoint,
  type WebSocketEndpointDeps,
} from './ws/upgrade.ts';

export interface GraphqlEndpoint {
  readonly schemaFile: SchemaFile;
  /** One operation or a batch, as JSON bytes. */
  post(body: Buffer, facts: RequestFacts): MaybePromise<HttpReply>;
  /** The same with files, as a multipart request. */
  postMultipart(request: HttpRequest, facts: RequestFacts): Promise<HttpReply>;
  /** A query, as a query string. */
  get(query: string, facts: RequestFacts): MaybePromise<HttpReply>;
  readonly upgrade: WebSocketEndpoint['upgrade'];
  /** Ends event streams and subscriptions, and every socket; resolves when the sockets are gone. */
  close(): Promise<void>;
}

export interface EndpointDeps
  extends EngineDeps, Omit<MultipartDeps, 'engine'>, Pick<WebSocketEndpointDeps, 'viewerOf'> {
  readonly answers: RunnerDeps['answers'];
  readonly config: Config;
}

/** Different subscriptions: each is executed once per event, a thousand take some 50 ms. */
const distinctMax = 1_000;

export function createEndpoint(deps: EndpointDeps): GraphqlEndpoint {
  const { config, log, answers, pool } = deps;
  const engine = createEngine(deps);
  const subscriptions = createSubscriptions({ engine, distinctMax, pool, log });
  const streams = createEventStreams({ engine, subscriptions, pool, config });
  const runner = createRunner({ engine, streams, answers, config });
  const multipart = { ...deps, engine };
  const sockets = createWebSocketEndpoint({
    ...deps,
    engine,
    subscriptions,
    createRequestId: deps.createUuid,
    now: () => performance.now(),
  });

  return {
    schemaFile: createSchemaFile(typeDefs),
    post: (body, facts) => runner.post(body, facts),
    get: (query, facts) => runner.get(query, facts),
    async postMultipart(request, facts) {
      try {
        return await runMultipart(request, multipart, (body) => runner.runValue(body, facts));
      } catch (error) {
        return toRefusalReply(error, facts);
      }
    },
    upgrade: (incoming, socket, head) => sockets.upgrade(incoming, socket, head),
    close() {
      streams.close();
      subscriptions.close();
      return sockets.close();
    },
  };
}
