/**
 * GraphQL over HTTP and WebSocket (Spec §4.1, §6, R25 to R28). The engine is loaded after the
 * start.
 */

import { AppError, toStack } from '../errors.ts';
import type { EndpointDeps, GraphqlEndpoint } from '../graphql/endpoint.ts';
import { typeDefs } from '../graphql/schema/type-defs.ts';
import { createEtag } from '../http/etag.ts';
import { isJsonType } from '../http/json.ts';
import { negotiate, parseMediaType } from '../http/media-type.ts';
import {
  emptyResponse,
  type Handler,
  type HttpRequest,
  type HttpResponse,
} from '../http/message.ts';
import type { UpgradeListener } from '../http/server/server.ts';

export type GraphqlHandlers = ReturnType<typeof createGraphqlHandlers>;

interface GraphqlDeps extends EndpointDeps {
  /** Whether there is a page to lead browsers to. */
  readonly hasUi: boolean;
}

export function createGraphqlHandlers(deps: GraphqlDeps) {
  const { log, hasUi } = deps;
  let endpoint: GraphqlEndpoint | undefined;
  let loading: Promise<GraphqlEndpoint> | undefined;
  let isClosed = false;

  const load = async (): Promise<GraphqlEndpoint> => {
    try {
      const { createEndpoint } = await import('../graphql/endpoint.ts');
      endpoint = createEndpoint(deps);
      if (isClosed) void endpoint.close();
      return endpoint;
    } catch (error) {
      // Such as a shortage of file descriptors: the next request tries again. Node 20 keeps the
      // failure of a file that it has found, and tries it only after a restart.
      loading = undefined;
      log('error', 'the GraphQL endpoint cannot be loaded', { reason: toStack(error) });
      throw new AppError('internal_error', 'The server failed.');
    }
  };
  const open = (): Promise<GraphqlEndpoint> => (loading ??= load());

  return {
    /** Loads the engine, before a request needs it. After a failure, a request tries again. */
    load: open,
    /** One operation, a batch, or a multipart request. */
    post: async (request: HttpRequest): Promise<HttpResponse> => {
      const contentType = request.header('content-type');
      if (isJsonType(contentType)) return (await open()).post(request);
      if (parseMediaType(contentType ?? '')?.essence === 'multipart/form-data') {
        return (await open()).postMultipart(request);
      }
      const accept = 'application/json, multipart/form-data';
      const message = `The body must be one of: ${accept}.`;
      throw new AppError('unsupported_media_type', message, { headers: ['Accept', accept] });
    },
    get: async (request: HttpRequest): Promise<HttpResponse> => {
      // R6a: with the headers of an upgrade it would not be here. Some proxies drop them.
      if (request.header('sec-websocket-key') !== undefined) throw upgradeRequired();
      if (hasUi && request.query === '' && isBrowser(request)) return toUi;
      return (await open()).get(request);
    },
    /** The schema as a file. */
    schema: schemaFile,
    upgrade: ((incoming, socket, handshake) => {
      open().then(
        (opened) => opened.upgrade(incoming, socket, handshake),
        (error: unknown) => handshake.refuse(error as AppError), // see `load`
      );
    }) satisfies UpgradeListener,
    /** The numbers of open connections and subscriptions. */
    count: () => endpoint?.count() ?? { webSockets: 0, eventStreams: 0, subscriptions: 0 },
    async close(): Promise<void> {
      isClosed = true;
      await loading?.catch(() => undefined);
      await endpoint?.close();
    },
  };
}

/** RFC 9110 §15.5.22. It is the last one: Node reads no request behind a handshake. */
function upgradeRequired(): AppError {
  const message = 'A WebSocket needs `Upgrade: websocket` and `Connection: upgrade`.';
  const headers = ['Upgrade', 'websocket', 'Connection', 'Upgrade, close'];
  return new AppError('upgrade_required', message, { headers });
}

/** R35: only for an `Accept` that prefers a page to JSON, which programs do not send. */
function isBrowser(request: HttpRequest): boolean {
  return negotiate(request.header('accept'), ['application/json', 'text/html']) === 'text/html';
}

const toUi = emptyResponse(303, ['Location', '/graphql-ui/', 'Vary', 'Accept']);

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
