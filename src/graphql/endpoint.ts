/**
 * The GraphQL endpoint over HTTP: bytes or a query string in, a response out. It is loaded with the
 * first request that needs it: `graphql` takes longer to load than the rest of the service.
 */

import type { HttpReply, HttpRequest } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { createEngine, type Engine, type EngineDeps } from './engine.ts';
import { type MultipartDeps, runMultipart } from './http/multipart.ts';
import { type RequestFacts, createRunner, type RunnerDeps, toRefusalReply } from './http/runner.ts';
import { createSchemaFile, type SchemaFile } from './http/schema-file.ts';
import { createEventStreams, type EventStreams, type EventStreamsDeps } from './http/sse.ts';
import { createSubscriptions, type Subscriptions } from './events/subscriptions.ts';
import { typeDefs } from './schema/type-defs.ts';

export interface GraphqlEndpoint {
  readonly engine: Engine;
  /** Shared by sockets and event streams; to be closed after both. */
  readonly subscriptions: Subscriptions;
  readonly streams: EventStreams;
  readonly schemaFile: SchemaFile;
  /** One operation or a batch, as JSON bytes. */
  post(body: Buffer, facts: RequestFacts): MaybePromise<HttpReply>;
  /** The same with files, as a multipart request. */
  postMultipart(request: HttpRequest, facts: RequestFacts): Promise<HttpReply>;
  /** A query, as a query string. */
  get(query: string, facts: RequestFacts): MaybePromise<HttpReply>;
}

export interface EndpointDeps extends EngineDeps, Omit<MultipartDeps, 'engine' | 'config'> {
  readonly answers: RunnerDeps['answers'];
  readonly config: EngineDeps['config'] &
    MultipartDeps['config'] &
    EventStreamsDeps['config'] &
    RunnerDeps['config'];
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

  return {
    engine,
    subscriptions,
    streams,
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
  };
}
