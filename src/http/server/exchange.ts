/**
 * The exchange of a request and its response: the connection's turn, the arrival of the body, the
 * head, the route, the handler, and the sending.
 */

import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { AppError } from '../../errors.ts';
import { isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Found } from '../../router.ts';
import { negotiate } from '../media-type.ts';
import { emptyResponse, type Endpoint, HttpRequest, type HttpResponse } from '../message.ts';
import { toProblem } from '../problem.ts';
import { ClientGone, RequestBody } from './body.ts';
import type { Connection } from './connection.ts';
import { checkMessage, hasBody, type Incoming, type Message, parseTarget } from './incoming.ts';
import { clientLeft, observeAtOnce, observeEnd } from './observe.ts';
import { refuse } from './raw-response.ts';
import { createResponseBatch } from './response-batch.ts';
import { send, type SendDeps } from './send.ts';

export interface ExchangeDeps extends SendDeps {
  readonly find: (method: string, path: string) => Found<Endpoint>;
  readonly allowed: (path: string) => string | undefined;
  /** The first part of every request id of this process. */
  readonly idPrefix: string;
}

export type Listener = ReturnType<typeof createListener>;

export function createListener(deps: ExchangeDeps) {
  const { log, pool, observer } = deps;
  const state = { ...deps, closing: false, draining: false };
  let requests = 0;
  const nextId = (): string => {
    requests += 1;
    return `${deps.idPrefix}-${requests.toString(36)}`;
  };
  const batch = createResponseBatch();
  const packetsAreRead = createArrivals(() => batch.flush());

  const exchange = async (connection: Connection, message: Message): Promise<void> => {
    const { incoming, outgoing } = message;
    const body = hasBody(incoming) ? new RequestBody(message, pool) : undefined;
    const turn = connection.turn(outgoing, body);
    if (body?.hasBegun === false) {
      await packetsAreRead();
      body.begin();
    }
    if (turn !== undefined) await turn;
    if (incoming.socket.destroyed) return;
    const request = new HttpRequest(nextId(), message, { body, room: pool.open() });
    observer?.begin();
    let response: HttpResponse;
    try {
      const made = dispatch(request, message, state);
      // Without a promise for a value: it is measurable for small responses.
      response = isPromise(made) ? await made : made;
    } catch (error) {
      if (error instanceof ClientGone) {
        request.release();
        outgoing.destroy();
        if (observer) observeEnd(request, clientLeft, observer);
        return;
      }
      response = toProblem(error, request.id, log);
    }
    // A stream can fail at any time, and a stopping server may end the connection.
    if (state.closing || response.body instanceof Readable) send(request, response, state);
    else batch.send(() => send(request, response, state));
  };

  return {
    /** Responds to a request when it is its turn on the connection. */
    respond(connection: Connection, message: Message): void {
      // The last response ended the connection; what follows until it is closed is ignored.
      if (connection.socket.writable) void exchange(connection, message);
    },
    /** Answers bytes that are not a request, and ends the connection. */
    refuse(socket: Socket, error: AppError): void {
      const { remoteAddress = '' } = socket;
      const id = nextId();
      const sent = refuse(socket, error, id);
      const header = (): undefined => undefined;
      const unknown = { id, method: '', endpoint: undefined, remoteAddress, header };
      if (observer) observeAtOnce(unknown, sent, observer);
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

/**
 * Returns a function whose promise is fulfilled when Node has read the packets of this iteration of
 * the event loop: most bodies arrive in those of their heads, and need not be waited for. `done` is
 * called when those who waited have run.
 */
function createArrivals(done: () => void): () => Promise<void> {
  let current: Promise<void> | undefined;
  return () => {
    current ??= new Promise((resolve) => {
      setImmediate(() => {
        current = undefined;
        resolve();
      });
      setImmediate(done);
    });
    return current;
  };
}

/** Checks the message, finds the endpoint and calls it. */
function dispatch(
  request: HttpRequest,
  { incoming, expectation }: Message,
  { draining, cors, find, allowed }: ExchangeDeps & { readonly draining: boolean },
): MaybePromise<HttpResponse> {
  if (draining) {
    throw new AppError('draining', 'The server is stopping.', { retryAfterSeconds: 5 });
  }
  checkMessage(incoming);
  if (expectation === 'other') {
    throw new AppError('unsupported_expectation', 'Only 100-continue can be expected.');
  }
  const { path, query, host } = parseTarget(incoming.url ?? '');
  request.path = path;
  request.query = query;
  request.host = host ?? incoming.headers.host ?? ownAddress(incoming);
  const { method } = request;
  if (method === 'OPTIONS') return cors?.preflight(request) ?? toOptions(path, allowed(path));
  const found = find(method, path);
  if (found.kind === 'not_found') throw new AppError('not_found', 'There is nothing at this path.');
  if (found.kind === 'method_not_allowed') {
    throw new AppError('method_not_allowed', `This resource has ${found.allow}.`, found);
  }
  const { handler, produces } = found.endpoint;
  request.endpoint = found.endpoint;
  request.params = found.params;
  if (produces !== undefined) checkAccept(incoming.headers.accept, produces);
  return handler(request);
}

function toOptions(path: string, allow: string | undefined): HttpResponse {
  if (path === '*') return emptyResponse(204);
  if (allow === undefined) throw new AppError('not_found', 'There is nothing at this path.');
  return emptyResponse(204, ['Allow', allow]);
}

/** R6: called only for a route whose response has one fixed media type. */
function checkAccept(accept: string | undefined, produces: string): void {
  if (accept === produces || negotiate(accept, [produces]) !== undefined) return;
  throw new AppError('not_acceptable', `The response is ${produces} and nothing else.`);
}

/** The address that the client connected to, for HTTP/1.0 without Host. */
function ownAddress({ socket }: Incoming): string {
  const { localAddress = '', localPort } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
