/**
 * The exchange of a request and its response: the connection's turn, the arrival of the body, the
 * head, the route, the handler, and the sending.
 */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate as immediate } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import { isPromise, type MaybePromise } from '../../maybe-promise.ts';
import { ConnectionMemory, type MemoryPool, uncountedBytesMax } from '../../memory-pool.ts';
import type { createRouter } from '../../router.ts';
import { negotiate } from '../media-type.ts';
import { emptyResponse, type Endpoint, HttpRequest, type HttpResponse } from '../message.ts';
import { toProblem } from '../problem.ts';
import { ClientGone, RequestBody } from './body.ts';
import { type Awaited, Patience } from './data-rate.ts';
import { checkMessage, hasBody, type Incoming, type Message, parseTarget } from './incoming.ts';
import { clientLeftStatus, observeAtOnce } from './observe.ts';
import { refuse } from './raw-response.ts';
import { createResponseBatch, createSend, type SendDeps } from './send.ts';

/** Memory of a waiting request: objects of Node, and the strings of each header. */
const waitingRequestBytes = 4_096;
const waitingHeaderBytes = 128;
/** The rest of the read that contained the head: the body is not read further while it waits. */
const waitingBodyBytes = 65_536;

/**
 * One connection. Its requests run one after the other, in their order: each starts when the
 * response before it was written completely (RFC 9112 §9.3.2, R33).
 */
export class Connection {
  readonly socket: Socket;
  /** What it holds of the pool. */
  readonly memory: ConnectionMemory;
  /** The requests that wait, without what was received of their bodies. */
  readonly #waitingRoom;
  /** True when the socket no longer carries HTTP. */
  isUpgraded = false;
  /** True when invalid bytes were received; they are refused once. */
  isRefused = false;
  /** True when a response was begun that ends the connection: what waits is never looked at. */
  #isEnding = false;
  /** The response to the last request received, and the body of that request. */
  #last: ServerResponse | undefined;
  #body: RequestBody | undefined;
  /** The response to the request that is running. */
  #current: ServerResponse | undefined;
  /** What ends the wait of each request that waits. */
  readonly #waiting = new Set<() => void>();
  readonly #patience = new Patience();

  constructor(socket: Socket, pool: MemoryPool) {
    this.socket = socket;
    this.memory = new ConnectionMemory(pool);
    this.#waitingRoom = this.memory.openLasting();
  }

  /** The last response, unless it was written completely. Its request may still wait. */
  get pending(): ServerResponse | undefined {
    const last = this.#last;
    return last === undefined || last.writableFinished || last.destroyed ? undefined : last;
  }

  /** True if it was ended because a body came in too many pieces. */
  get isInPieces(): boolean {
    return this.#body?.isInPieces === true;
  }

  /** Call it once a second. Closes the connection of a client that is too slow. */
  sweep(idleSecondsMax: number): void {
    const { socket } = this;
    const awaited = this.#awaited;
    const bytes =
      awaited === 'body' ? socket.bytesRead : socket.bytesWritten - socket.writableLength;
    const isOver = this.#patience.isOver(awaited, bytes, this.memory.bytes, idleSecondsMax);
    if (awaited === 'nothing') {
      this.#last = undefined;
      this.#current = undefined;
      this.#body = undefined;
    }
    if (!isOver) return;
    // The handler that reads the body gets the error, which becomes the response.
    if (awaited === 'body' && this.#body?.isAwaited === true) {
      const reason = 'The body did not arrive in time.';
      this.#body.leave(new AppError('request_timeout', reason, { close: true }));
    } else socket.destroy();
  }

  get #awaited(): Awaited {
    const { socket, pending } = this;
    if (socket.writableLength > 0) return 'output';
    const isComing = this.#last?.req.complete === false && !socket.isPaused();
    if (pending === undefined) return isComing ? 'body' : 'nothing';
    return isComing && this.#body?.isAwaited === true ? 'body' : 'response';
  }

  /** Call it when the socket is closed. */
  end(): void {
    this.#waitingRoom.release();
    for (const end of this.#waiting) end();
  }

  /**
   * Returns undefined if the request may start now, or a promise that is fulfilled at its turn, or
   * when the socket is closed before. `body`: of the request.
   */
  turn(outgoing: ServerResponse, body: RequestBody | undefined): Promise<void> | undefined {
    this.#last = outgoing;
    this.#body = body;
    // Node assigns the socket to a response when the one before it was written completely.
    if (outgoing.socket === null) return this.#wait(outgoing);
    this.#current = outgoing;
    return undefined;
  }

  /**
   * Call it when the head of a stream was written. If it ends the connection, what is pipelined
   * behind it is never answered (R33). Node keeps that until the connection ends: more than counts
   * as part of it ends it now, because a stream may have no end.
   */
  streams({ shouldKeepAlive }: ServerResponse): void {
    this.#isEnding ||= !shouldKeepAlive;
    if (this.#isEnding && this.#waitingRoom.bytes > uncountedBytesMax) this.socket.destroy();
  }

  /** Calls `act` when all pending responses are sent; never, if one ends the connection. */
  afterResponses(act: () => void): void {
    const { pending } = this;
    if (pending === undefined) act();
    else {
      pending.once('close', () => {
        if (this.socket.writable) act();
      });
    }
  }

  /**
   * Like `afterResponses`, after Node has detached the socket (upgrade, CONNECT): the pending
   * responses still need its `drain` events.
   */
  afterResponsesDetached(act: () => void): void {
    const { socket } = this;
    const tell = (): void => void this.#current?.emit('drain');
    socket.on('drain', tell);
    this.afterResponses(() => {
      socket.off('drain', tell);
      act();
    });
  }

  /** After invalid bytes in the last request: replaces its `run` by `act` if it still waits. */
  replacePending(act: () => void): void {
    const { pending } = this;
    if (pending?.socket === null) {
      pending.removeAllListeners('socket');
      this.#runAtTurn(pending, act);
    } else act();
  }

  #wait(outgoing: ServerResponse): Promise<void> {
    const { req } = outgoing;
    const headerBytes = (req.rawHeaders.length / 2) * waitingHeaderBytes;
    const bytes = waitingRequestBytes + headerBytes + (hasBody(req) ? waitingBodyBytes : 0);
    const room = this.#waitingRoom;
    const hasRoom = !this.#isEnding || room.bytes + bytes <= uncountedBytesMax;
    if (hasRoom && room.grow(bytes)) this.socket.pause();
    else this.socket.destroy();
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      this.#runAtTurn(outgoing, () => {
        this.#waiting.delete(resolve);
        room.set(room.bytes - bytes);
        if (this.#waiting.size === 0) this.socket.resume();
        resolve();
      });
    });
  }

  /** Runs in a later iteration of the event loop, so that other connections run in between. */
  #runAtTurn(outgoing: ServerResponse, run: () => void): void {
    outgoing.once('socket', () => {
      this.#current = outgoing;
      setImmediate(() => {
        if (!this.socket.destroyed) run();
      });
    });
  }
}

export interface ExchangeDeps extends SendDeps, ReturnType<typeof createRouter<Endpoint>> {
  /** The first part of every request id of this process. */
  readonly idPrefix: string;
}

/** What is observed of bytes that are not a request. */
const noRequest = { method: '', endpoint: undefined, header: () => undefined };

export type Listener = ReturnType<typeof createListener>;

export function createListener(deps: ExchangeDeps) {
  const { log, observer } = deps;
  const state = { ...deps, closing: false, draining: false };
  let requests = 0;
  const nextId = (): string => {
    requests += 1;
    return `${deps.idPrefix}-${requests.toString(36)}`;
  };
  const send = createSend(state);
  const batch = createResponseBatch(send);
  /** Fulfilled when Node has read the packets of this iteration of the event loop. */
  let packetsAreRead: Promise<void> | undefined;

  return {
    /** Responds to a request when it is its turn on the connection. */
    async respond(connection: Connection, message: Message): Promise<void> {
      const { incoming, outgoing } = message;
      const { memory } = connection;
      // The last response ended the connection; what follows until it is closed is ignored.
      if (!incoming.socket.writable) return;
      const body = hasBody(incoming) ? new RequestBody(message, memory) : undefined;
      const turn = connection.turn(outgoing, body);
      if (body?.state === 'unread') {
        // Most bodies arrive in the packets of their heads, and need not be waited for.
        if (packetsAreRead === undefined) {
          packetsAreRead = immediate();
          setImmediate(batch.flush); // when those who wait have run
        }
        await packetsAreRead;
        packetsAreRead = undefined;
        body.begin();
      }
      if (turn !== undefined) await turn;
      if (incoming.socket.destroyed) return body?.room?.release();
      const request = new HttpRequest(nextId(), message, { body, memory });
      observer?.begin();
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
      const isStream = response.body instanceof Readable;
      if (state.closing || isStream) send(request, response);
      else batch.send(request, response);
      if (isStream) connection.streams(outgoing);
    },
    /** Answers bytes that are not a request, and ends the connection. */
    refuse(socket: Socket, error: AppError): void {
      const { remoteAddress = '' } = socket;
      const id = nextId();
      const sent = refuse(socket, error, id);
      if (observer) observeAtOnce({ ...noRequest, id, remoteAddress }, sent, observer);
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
  if (method === 'OPTIONS') {
    const preflight = cors?.preflight(request);
    return preflight ?? emptyResponse(204, path === '*' ? [] : ['Allow', allowed(path)]);
  }
  const { endpoint, params } = find(method, path);
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
  return handler(request);
}

/** The address that the client connected to, for HTTP/1.0 without Host. */
function ownAddress({ socket }: Incoming): string {
  const { localAddress = '', localPort } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
