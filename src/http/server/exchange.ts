/**
 * The exchange of a request and its response: the connection's turn, the arrival of the body, the
 * head, the route, the handler, and the sending.
 */

import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Found } from '../../router.ts';
import type { Cors } from '../cors.ts';
import { ClientGone, hasBody, RequestBody } from './body.ts';
import type { Connection } from './connection.ts';
import { checkMessage, type Incoming, parseTarget } from './incoming.ts';
import { toConditional } from '../etag.ts';
import { negotiate } from '../media-type.ts';
import { observeResponse, observeAtOnce, observeLeft, type Observer } from './observe.ts';
import { emptyResponse, type Endpoint, type HttpResponse } from '../message.ts';
import { toProblem } from '../problem.ts';
import { refuse } from './raw-response.ts';
import { type Message, Request } from './request.ts';
import { type SendContext, sendResponse } from './send.ts';
import { createResponseBatch } from './response-batch.ts';

export interface ExchangeDeps {
  readonly find: (method: string, path: string) => Found<Endpoint>;
  readonly allowed: (path: string) => string | undefined;
  readonly log: Log;
  /** Limits the memory of requests while they are served. */
  readonly pool: MemoryPool;
  /** Undefined: pages of other origins cannot read responses. */
  readonly cors?: Cors | undefined;
  /** Notified of each finished request. */
  readonly observer?: Observer | undefined;
  /** The first part of every request id of this process. */
  readonly idPrefix: string;
}

export interface Listener {
  /** Responds to a request when it is its turn on the connection. */
  respond(connection: Connection, message: Message): void;
  /** From now on every response ends its connection, so that a drain finds few idle ones. */
  announceStop(): void;
  /** From now on requests are refused with 503. */
  drain(): void;
  /** Answers bytes that are not a request, and ends the connection. */
  refuse(socket: Socket, error: AppError): void;
}

export function createListener(deps: ExchangeDeps): Listener {
  const { log, pool, cors, observer } = deps;
  const context = { log, pool, cors, closing: false };
  let isDraining = false;
  const nextId = createRequestIds(deps.idPrefix);
  const sendNow = (pending: PendingResponse): void => sendPending(pending, context, observer);
  const batch = createResponseBatch(sendNow);
  const send = (request: Request, response: HttpResponse): void => {
    // Not batched: a stream can fail at any time, and a stopping server may end the connection.
    if (context.closing || response.body instanceof Readable) sendNow({ request, response });
    else batch.send({ request, response });
  };
  const fail = (request: Request, error: unknown): void => {
    if (error instanceof ClientGone) {
      request.release();
      request.outgoing.destroy();
      if (observer) observeLeft(request, observer);
    } else send(request, toProblem(error, request.id, log));
  };
  const run = (request: Request): void => {
    observer?.begin();
    try {
      if (isDraining) {
        throw new AppError('draining', 'The server is stopping.', { retryAfterSeconds: 5 });
      }
      const response = dispatch(request, deps);
      if (isPromise(response)) {
        response.then(
          (found) => send(request, found),
          (error: unknown) => fail(request, error),
        );
      } else send(request, response);
    } catch (error) {
      fail(request, error);
    }
  };
  const start = ({ message, body, turn }: Arrival): void => {
    // Copying the message into a new object would take a sixth of the time of a small request.
    const startNow = (): void => {
      if (!message.incoming.socket.destroyed) run(new Request(nextId(), message, { body, pool }));
    };
    if (turn === undefined) startNow();
    else void turn.then(startNow);
  };
  const startWithBody = createArrivals(start, () => batch.flush());

  return {
    respond(connection, message) {
      const { incoming, outgoing } = message;
      // The last response ended the connection; what follows until it is closed is ignored.
      if (!connection.socket.writable) return;
      const body = hasBody(incoming) ? new RequestBody(incoming, pool) : undefined;
      const turn = connection.turn(outgoing, body);
      const arrival = { message, body, turn };
      if (body?.hasBegun === false) startWithBody(arrival);
      else start(arrival);
    },
    refuse: (socket, error) => refuseSocket(socket, error, { id: nextId(), observer }),
    announceStop() {
      context.closing = true;
    },
    drain() {
      isDraining = true;
      context.closing = true;
      batch.flush();
    },
  };
}

function createRequestIds(prefix: string): () => string {
  let requests = 0;
  return () => {
    requests += 1;
    return `${prefix}-${requests.toString(36)}`;
  };
}

/** A request that arrives. */
interface Arrival {
  readonly message: Message;
  readonly body: RequestBody | undefined;
  /** Undefined if it is its turn. */
  readonly turn: Promise<void> | undefined;
}

/**
 * Returns a function that starts a request when Node has read the packets of this iteration of the
 * event loop: most bodies arrive in those of their heads, and need not be waited for. `done` is
 * called when all requests of the iteration have started.
 */
function createArrivals(
  start: (arrival: Arrival) => void,
  done: () => void,
): (arrival: Arrival) => void {
  let arrivals: Arrival[] = [];
  const startAll = (): void => {
    const now = arrivals;
    arrivals = [];
    for (const arrival of now) {
      arrival.body?.begin();
      start(arrival);
    }
    done();
  };
  return (arrival) => {
    if (arrivals.push(arrival) === 1) setImmediate(startAll);
  };
}

/** A response that was not sent yet. */
interface PendingResponse {
  readonly request: Request;
  readonly response: HttpResponse;
}

/** Sends the response or, if that fails, a response with the reason. */
function sendPending(
  { request, response }: PendingResponse,
  context: SendContext,
  observer: Observer | undefined,
): void {
  let sent = response;
  let bytes: number;
  try {
    sent = toConditional(response, request);
    bytes = sendResponse(sent, request, context);
  } catch (error) {
    // No memory, a failed condition, or headers that Node refuses: nothing was written yet.
    if (response.body instanceof Readable) response.body.destroy();
    sent = toProblem(error, request.id, context.log);
    bytes = sendResponse(sent, request, context);
  }
  request.release();
  if (observer) observeResponse(request, sent, { observer, bytes });
}

function refuseSocket(
  socket: Socket,
  error: AppError,
  { id, observer }: { readonly id: string; readonly observer: Observer | undefined },
): void {
  const { remoteAddress = '' } = socket;
  const sent = refuse(socket, error, id);
  const unknown = { id, method: '', endpoint: undefined, remoteAddress, header: noHeader };
  if (observer) observeAtOnce(unknown, sent, observer);
}

const noHeader = (): undefined => undefined;

/** Checks the message, finds the endpoint and calls it. */
function dispatch(request: Request, deps: ExchangeDeps): MaybePromise<HttpResponse> {
  const { incoming, method } = request;
  checkMessage(incoming);
  if (request.expectation === 'other') {
    throw new AppError('unsupported_expectation', 'Only 100-continue can be expected.');
  }
  const target = parseTarget(incoming.url ?? '');
  request.path = target.path;
  request.query = target.query;
  request.host = target.host ?? incoming.headers.host ?? ownAddress(incoming);
  if (method === 'OPTIONS') {
    return deps.cors?.preflight(request) ?? optionsResponse(target.path, deps.allowed(target.path));
  }
  const found = deps.find(method, target.path);
  if (found.kind === 'not_found') throw new AppError('not_found', 'There is nothing at this path.');
  if (found.kind === 'method_not_allowed') {
    throw new AppError('method_not_allowed', `This resource has ${found.allow}.`, found);
  }
  request.endpoint = found.endpoint;
  const { handler, produces } = found.endpoint;
  if (produces !== undefined) checkAccept(incoming.headers.accept, produces);
  request.params = found.params;
  return handler(request);
}

/** R6: called only for a route whose response has one fixed media type. */
function checkAccept(accept: string | undefined, produces: string): void {
  if (accept === undefined || accept === '*/*' || accept === produces) return;
  if (negotiate(accept, [produces]) !== undefined) return;
  throw new AppError('not_acceptable', `The response is ${produces} and nothing else.`);
}

/** The address that the client connected to, for HTTP/1.0 without Host. */
function ownAddress({ socket }: Incoming): string {
  const { localAddress = '', localPort } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

function optionsResponse(path: string, allow: string | undefined): HttpResponse {
  if (path === '*') return emptyResponse(204);
  if (allow === undefined) throw new AppError('not_found', 'There is nothing at this path.');
  return emptyResponse(204, ['Allow', allow]);
}
