/** GraphQL over HTTP and WebSocket (Spec §4.1, §6, R25 to R28). Loads the engine on first use. */

import { AppError } from '../errors.ts';
import type { EndpointDeps, GraphqlCounts, GraphqlEndpoint } from '../graphql/endpoint.ts';
import { typeDefs } from '../graphql/schema/type-defs.ts';
import { createEtag } from '../http/etag.ts';
import { isJsonType, negotiate, parseMediaType } from '../http/media-type.ts';
import type { Handler } from '../http/message.ts';
import { refuse } from '../http/server/raw-response.ts';
import type { UpgradeListener } from '../http/server/server.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { WritingGuard } from './accounts.ts';

export interface GraphqlHandlers {
  /** One operation, a batch, or a multipart request. */
  readonly post: Handler;
  /** A query. */
  readonly get: Handler;
  /** The schema as a file. */
  readonly schema: Handler;
  readonly upgrade: UpgradeListener;
  count(): GraphqlCounts;
  /** Ends every event stream, and every WebSocket with 1001; resolves when the sockets are gone. */
  close(): Promise<void>;
}

export function createGraphqlHandlers(
  deps: EndpointDeps & { readonly writing: WritingGuard },
): GraphqlHandlers {
  const { config, log, writing } = deps;
  let endpoint: MaybePromise<GraphqlEndpoint> | undefined;
  let closed = false;

  const load = async (): Promise<GraphqlEndpoint> => {
    const { createEndpoint } = await import('../graphql/endpoint.ts');
    const loaded = createEndpoint(deps);
    if (closed) void loaded.close();
    return (endpoint = loaded);
  };
  const open = (): MaybePromise<GraphqlEndpoint> => (endpoint ??= load());

  /** R23: a token is checked before the first byte of an upload is stored. */
  const postMultipart = writing(async (request) => (await open()).postMultipart(request));

  return {
    async post(request) {
      const contentType = request.header('content-type');
      if (isJsonType(contentType)) {
        const body = await request.readBody(config.bodyBytesMax);
        return andThen(open(), (opened) => opened.post(body, request));
      }
      if (parseMediaType(contentType ?? '')?.essence !== 'multipart/form-data') throw badType();
      return postMultipart(request);
    },
    get: (request) => andThen(open(), (opened) => opened.get(request)),
    schema: schemaFile,
    upgrade(incoming, socket, head) {
      const upgraded = andThen(open(), (opened) => opened.upgrade(incoming, socket, head));
      if (!isPromise(upgraded)) return;
      upgraded.catch((error: unknown) => {
        log('error', 'the GraphQL endpoint cannot be loaded', { reason: String(error) });
        refuse(socket, new AppError('internal_error', 'The server failed.'));
      });
    },
    count() {
      if (endpoint === undefined || isPromise(endpoint)) return nothing;
      return endpoint.count();
    },
    async close() {
      closed = true;
      // If loading failed, there is nothing to close.
      const opened = await Promise.resolve(endpoint).catch(() => undefined);
      await opened?.close();
    },
  };
}

/** The counts before the endpoint is loaded. */
const nothing: GraphqlCounts = { webSockets: 0, eventStreams: 0, subscriptions: 0 };

/** The text shows `@uppercase` on fields, which introspection cannot. */
const schemaFile: Handler = (request) => {
  const type = negotiate(request.header('accept'), ['text/plain', 'application/graphql']);
  if (type === undefined) {
    throw new AppError('not_acceptable', 'The schema is text/plain or application/graphql.');
  }
  const etag = createEtag(typeDefs);
  const headers = ['Content-Type', `${type}; charset=utf-8`, 'ETag', etag, 'Vary', 'Accept'];
  return { status: 200, headers: [...headers, 'Cache-Control', 'no-cache'], body: typeDefs, etag };
};

function badType(): AppError {
  const accept = 'application/json, multipart/form-data';
  return new AppError('unsupported_media_type', `The body must be one of: ${accept}.`, { accept });
}
