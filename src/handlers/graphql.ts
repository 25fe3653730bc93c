/** GraphQL over HTTP (Spec §4.1, R25 to R27): media types and tokens; the rest is loaded late. */

import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { EndpointDeps, GraphqlEndpoint } from '../graphql/endpoint.ts';
import type { RequestFacts } from '../graphql/http/runner.ts';
import { isJsonType, parseMediaType } from '../http/media-type.ts';
import type { Handler, HttpRequest } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';

export interface GraphqlHandlers {
  /** One operation, a batch, or a multipart request. */
  readonly post: Handler;
  /** A query. */
  readonly get: Handler;
  /** The schema as a file. */
  readonly schema: Handler;
  /** The endpoint behind the handlers, loaded with the first call; sockets share its engine. */
  openEndpoint(): MaybePromise<GraphqlEndpoint>;
  /** Ends every event stream, and lets no new subscription begin. */
  closeStreams(): void;
}

export interface GraphqlDeps extends EndpointDeps {
  readonly config: EndpointDeps['config'] & Pick<Config, 'bodyBytesMax'>;
  /** Whose token the request carries (R23): undefined without one, a throw for a bad one. */
  readonly viewerOf: (request: HttpRequest) => MaybePromise<Account | undefined>;
}

export function createGraphqlHandlers(deps: GraphqlDeps): GraphqlHandlers {
  const { config, viewerOf } = deps;
  let endpoint: GraphqlEndpoint | undefined;
  let opening: Promise<GraphqlEndpoint> | undefined;
  let closed = false;

  const closeStreams = (): void => {
    closed = true;
    endpoint?.streams.close();
    endpoint?.subscriptions.close();
  };
  const open = async (): Promise<GraphqlEndpoint> => {
    const { createEndpoint } = await import('../graphql/endpoint.ts');
    endpoint ??= createEndpoint(deps);
    if (closed) closeStreams();
    return endpoint;
  };
  const openEndpoint = (): MaybePromise<GraphqlEndpoint> => endpoint ?? (opening ??= open());

  const toFacts = (request: HttpRequest): RequestFacts => {
    return {
      requestId: request.id,
      viewer: () => viewerOf(request),
      accept: request.header('accept'),
      showCost: request.header('graphql-cost') !== undefined,
    };
  };

  /** R23: before the first byte of an upload is stored. */
  const checkWriter = async (request: HttpRequest): Promise<void> => {
    if (deps.writesNeedToken && (await viewerOf(request)) === undefined) {
      throw new AppError('missing_token', 'An upload needs a bearer token here.');
    }
  };

  return {
    openEndpoint,
    closeStreams,
    async post(request) {
      const contentType = request.header('content-type');
      if (isJsonType(contentType)) {
        const body = await request.readBody(config.bodyBytesMax);
        return (endpoint ?? (await openEndpoint())).post(body, toFacts(request));
      }
      if (parseMediaType(contentType ?? '')?.essence !== 'multipart/form-data') throw badType();
      await checkWriter(request);
      return (await openEndpoint()).postMultipart(request, toFacts(request));
    },
    get: (request) =>
      andThen(openEndpoint(), (opened) => opened.get(request.query, toFacts(request))),
    schema: (request) =>
      andThen(openEndpoint(), (opened) =>
        opened.schemaFile.reply(request.header('accept'), request.header('if-none-match')),
      ),
  };
}

function badType(): AppError {
  const accept = 'application/json, multipart/form-data';
  return new AppError('unsupported_media_type', `The body must be one of: ${accept}.`, { accept });
}
