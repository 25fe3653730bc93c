/**
 * The exchange of a request and its response: the order on the connection, the arrival of the body,
 * the head, the route, the handler, and the sending.
 */

import { type Duplex, Readable } from 'node:stream';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import { isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Find, Found } from '../../router.ts';
import type { RunInTurn } from '../../scheduler.ts';
import { negotiate } from '../media-type.ts';
import { emptyResponse, type Endpoint, HttpRequest, type HttpResponse } from '../message.ts';
import { toProblem } from '../problem.ts';
import { ClientGone, RequestBody } from './body.ts';
import type { Connection } from './connection.ts';
import { checkMessage, hasBody, type Incoming, type Message, parseTarget } from './incoming.ts';
import { clientLeftStatus, type Head, observeAtOnce, toObserved } from './observe.ts';
import { endWithProblem } from './raw-response.ts';
import { createResponseBatch, createSend, type SendDeps } from './send.ts';

export interface ExchangeDeps extends SendDeps {
  readonly find: Find<Endpoint>;
  /** The first part of every request id of this process. */
  readonly idPrefix: string;
  /** Calls work that a client can make long. */
  readonly run: RunInTurn;
}

type NoMatch = Exclude<Found<Endpoint>, { kind: 'match' }>;

export interface Refused {
  readonly incoming: Head;
  readonly endpoint?: Pick<Endpoint, 'route'> | undefined;
}

export type Listener = ReturnType<typeof createListener>;

export function createListener(deps: ExchangeDeps) {
  const { log, observer, run } = deps;
  let packetsAreRead: Promise<void> | undefined;
  /** Fulfilled when Node has read the packets of this iteration of the event loop. */
  const afterPackets = (): Promise<void> =>
    (packetsAreRead ??= nextIteration().then(() => (packetsAreRead = undefined)));
  const state = { ...deps, closing: false, draining: false, afterPackets };
  let requests = 0;
  const nextId = (): string => {
    requests += 1;
    return `${deps.idPrefix}-${requests.toString(36)}`;
  };
  const send = createSend(state);
  const batch = createResponseBatch(send);

  return {
    /** Responds to a request when those before it on the connection have their responses. */
    async respond(connection: Connection, message: Message): Promise<void> {
      const { incoming, outgoing } = message;
      // The last response ended the connection; what follows until it is closed is ignored.
      if (!incoming.socket.writable) return;
      const body = hasBody(incoming) ? new RequestBody(message, connection.memory) : undefined;
      const wait = connection.enqueue(outgoing, body);
      if (wait !== undefined) {
        body?.begin();
        await wait;
      }
      if (!incoming.socket.writable) return body?.reservation.release();
      const request = new HttpRequest(nextId(), message, { body, run, memory: connection.memory });
      observer?.begin(request);
      let response: HttpResponse;
      try {
        const made = dispatch(request, message, state);
        // Without a promise for a value: it is measurable for small responses.
        response = isPromise(made) ? await made : made;
      } catch (error) {
        if (error instanceof ClientGone) {
          outgoing.destroy();
          response = emptyResponse(clientLeftStatus);
        } else response = toProblem(error, request.id, log);
      }
      // A stream can fail at any time, and a stopping server may end the connection.
      if (state.closing || response.body instanceof Readable) send(request, response);
      else batch.send(request, response);
    },
    /**
     * Answers an upgrade, CONNECT or bytes that are not a request, and ends the connection.
     * `endpoint`: if its path is a route.
     */
    refuse(socket: Duplex, error: AppError, { incoming, endpoint }: Refused): void {
      const requestId = nextId();
      const head = { requestId, cors: deps.cors, origin: incoming.headers.origin };
      const sent = endWithProblem(socket, error, head);
      if (observer) observeAtOnce(toObserved(incoming, requestId, endpoint), sent, observer);
    },
    /** From now on every response ends its connection, so that a drain finds few idle ones. */
    announceStop(): void {
      state.closing = true;
    },
    /** From now on requests are refused with 503. */
    drain(): void {
      state.draining = true;
      state.closing = true;
      batch.flush();
    },
  };
}

interface DispatchDeps extends ExchangeDeps {
  readonly draining: boolean;
  readonly afterPackets: () => Promise<void>;
}

/** Checks the message, finds the endpoint and calls it. */
function dispatch(
  request: HttpRequest,
  { incoming, expectation }: Message,
  { draining, cors, find, afterPackets }: DispatchDeps,
): MaybePromise<HttpResponse> {
  if (draining) {
    throw new AppError('draining', 'The server is stopping.', { retryAfterSeconds: 5 });
  }
  checkMessage(incoming);
  if (expectation === 'other' && incoming.headers.expect !== '') {
    throw new AppError('unsupported_expectation', 'Only 100-continue can be expected.');
  }
  const { path, query, host } = parseTarget(incoming.url ?? '');
  request.path = path;
  request.query = query;
  request.host = host ?? incoming.headers.host ?? ownAddress(incoming);
  const { method } = request;
  if (method === 'OPTIONS') {
    const preflight = cors?.preflight(request);
    if (preflight !== undefined || path === '*') return preflight ?? emptyResponse(204);
  }
  const found = find(method, path);
  if (found.kind !== 'match') {
    const patch = method === 'OPTIONS' ? find('PATCH', path) : found;
    return refusePath(
      method,
      found,
      patch.kind === 'match' ? patch.endpoint.acceptPatch : undefined,
    );
  }
  const { endpoint, params } = found;
  request.endpoint = endpoint;
  request.params = params;
  const { handler, produces } = endpoint;
  const { accept } = incoming.headers;
  // R6: only for a route whose response has one fixed media type.
  if (produces !== undefined && accept !== undefined && accept !== produces) {
    if (negotiate(accept, [produces]) === undefined) {
      throw new AppError('not_acceptable', `The response is ${produces} and nothing else.`);
    }
  }
  const { body } = request;
  if (body === undefined) return handler(request);
  checkContentCoding(request);
  return afterPackets().then(() => {
    body.begin();
    return handler(request);
  });
}

/** R6a, RFC 9110 §15.5.16: no body is decompressed. */
function checkContentCoding(request: HttpRequest): void {
  const coding = request.header('content-encoding') ?? '';
  if (coding === '' || coding.toLowerCase() === 'identity') return;
  const headers = ['Accept-Encoding', 'identity'];
  throw new AppError('unsupported_media_type', 'No Content-Encoding is accepted.', { headers });
}

/** Responds to OPTIONS for a path that exists (R9), and throws for everything else. */
function refusePath(method: string, found: NoMatch, acceptPatch?: string): HttpResponse {
  if (found.kind === 'method-not-allowed') {
    const headers = ['Allow', found.allow];
    if (acceptPatch !== undefined) headers.push('Accept-Patch', acceptPatch);
    if (method === 'OPTIONS') return emptyResponse(204, headers);
    throw new AppError('method_not_allowed', `This resource has ${found.allow}.`, { headers });
  }
  throw found.kind === 'not-found'
    ? new AppError('not_found', 'There is nothing at this path.')
    : new AppError('malformed_request', 'The path holds a percent-escape that is not valid.');
}

/** The address that the client connected to, for HTTP/1.0 without Host. */
function ownAddress({ socket }: Incoming): string {
  const { localAddress = '', localPort } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
