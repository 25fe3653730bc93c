/**
 * The protocol state of one socket: initialisation, operations, limits. One subscription from its
 * first byte to its last, over both protocols (the older one's words in brackets):
 *
 *     client sends             server sends       where
 *     GET /graphql, Upgrade    101                upgrade.ts: accept
 *     connection_init          connection_ack     #init; state: new → ready
 *     subscribe 1 (start)      –                  protocols.ts: decode; #start;
 *                                                 operation.ts: run joins a group
 *     –                        next 1 (data)      for each comment: events/ → operation.ts:
 *                                                 next → client-socket.ts: deliver
 *     complete 1 (stop)        – (complete 1)     #stop
 *     close                    close              upgrade.ts → end; state: closed
 *
 * 1. Messages are read in the order received. One of over 512 bytes waits, as bytes, for a turn of
 *    the scheduler. Nothing more is read from the socket until it is read, and while operations of
 *    64 KiB wait to start: a burst is slowed.
 * 2. Before the acknowledgement `subscribe` closes the socket in the newer protocol (4401), and
 *    waits in the older one. Both close it 5 s after the upgrade (4408).
 * 3. Operations start in the order received: a subscription has joined its group before a mutation
 *    after it runs. At most 10 queries and mutations run, and none starts while more is queued for
 *    the client than may be. For example, of 12 queries the 11th starts when the client has taken
 *    the result of one of the first 10.
 * 4. A fault of an operation, and a message longer than a body, end this operation (`error`); a
 *    fault of the protocol, and a client that does not read, end the socket.
 */

import { findBefore } from '../../auth/access.ts';
import { tokenLengthMax } from '../../auth/jwt.ts';
import { AppError, toStack } from '../../errors.ts';
import { isObject, parseJson } from '../../http/json.ts';
import { poolIsFull } from '../../memory-pool.ts';
import { toRefusal } from '../errors.ts';
import { type ClientSocket, full } from './client-socket.ts';
import { operationBytes, type SocketDeps, SocketOperation } from './operation.ts';
import {
  type ClientMessage,
  type CloseFrame,
  connectionAck,
  errorMessage,
  findAuthorization,
  type OperationId,
  type Protocol,
  type Start,
  tooLongMessage,
} from './protocols.ts';

/** Timeout for `connection_init`, which clients send as soon as the socket is open. */
const initTimeoutMilliseconds = 5_000;
/** Queries and mutations of one socket that may run at the same time; others wait. */
const executingMax = 10;

/** Operations of one socket that wait to start; while more do, it is not read. */
const waitingBytesMax = 65_536;
/** Longer messages are read in turns of the event loop; until then they wait as bytes. */
const smallMessageBytes = 512;
/** Memory of a message that waits, in addition to its bytes. */
const messageBytes = 256;

/** Memory of the values of variables: 32 bytes for one of JSON, and the decoder takes no more. */
const valueBytesMax = 64_000;

export class Session {
  readonly client: ClientSocket;
  readonly operations = new Map<string, SocketOperation>();
  readonly #deps: SocketDeps;
  readonly #protocol: Protocol;
  /** Runs until `connection_init` arrives. */
  #initTimer: NodeJS.Timeout | undefined;
  #executing = 0;
  /** Messages that wait for their turn. */
  #unread = 0;
  #isStarting = false;
  #state: 'new' | 'ready' | 'closed' = 'new';
  #authorization: string | undefined;
  #keepAliveDue = false;

  constructor(
    deps: SocketDeps,
    client: ClientSocket,
    handshake: { readonly protocol: Protocol; readonly authorization: string | undefined },
  ) {
    this.#deps = deps;
    this.client = client;
    this.#protocol = handshake.protocol;
    this.#authorization = toStored(handshake.authorization);
    // Both protocols use 4408 here: the older one defines no code for a missing `connection_init`.
    const late = { code: 4408, reason: 'Connection initialisation timeout' };
    this.#initTimer = setTimeout(() => this.close(late), initTimeoutMilliseconds).unref();
  }

  /** Receives one message of the client, text or binary (R28), in order. Never throws. */
  receive(bytes: Buffer): void {
    this.client.endMessage();
    if (this.#state === 'closed') return;
    if (bytes.length <= smallMessageBytes && this.#unread === 0) return this.#read(bytes);
    const memory = this.client.memory.open();
    if (!memory.grow(bytes.length + messageBytes)) return this.close(full);
    this.#unread += 1;
    this.client.pause();
    void this.#deps.engine.scheduler.run(() => {
      memory.release();
      this.#unread -= 1;
      if (this.#state !== 'closed') this.#read(bytes);
    });
  }

  #read(bytes: Buffer): void {
    try {
      this.#obey(this.#decode(bytes), bytes.length);
    } catch (error) {
      this.#fail(error);
    }
    this.readOn();
  }

  /** Call it for each ping, to which `ws` has sent a pong, and each pong. */
  countControl({ length }: Buffer): void {
    this.client.endControl(length);
    this.readOn();
  }

  /** Call it for each packet: what a client sends shows that it is there, and is counted. */
  countPacket(bytes: number): void {
    if (!this.client.countPacket(bytes)) this.close(full);
  }

  /** Reads on if what was read is done, and what it asked for is read. */
  readOn(): void {
    if (this.#state === 'closed') return;
    const isBehind = this.#unread > 0 || (this.#state === 'ready' && this.#hasManyWaiting());
    if (isBehind || this.client.isBacklogged()) this.client.pause();
    else this.client.resume();
  }

  /** Call it at an interval: detects a dead client, and keeps the connection open. */
  ping(): void {
    this.client.ping();
    const { keepAlive } = this.#protocol;
    if (this.#state !== 'ready' || keepAlive === undefined) return;
    // The first one after the acknowledgement is left out (R28).
    if (this.#keepAliveDue) this.client.send(keepAlive);
    this.#keepAliveDue = true;
  }

  /** Call it when the client has taken all that was queued: operations that wait may start. */
  drained(): void {
    this.readOn();
    this.#startWaiting();
  }

  /** Closes the socket, and resolves when it is gone. */
  stop(): Promise<void> {
    this.close({ code: 1001, reason: 'The server is stopping' });
    return this.client.gone();
  }

  close(frame: CloseFrame): void {
    if (this.#state === 'closed') return;
    this.end();
    this.client.close(frame);
  }

  /** Stops all operations; the socket is closed or closing. */
  end(): void {
    this.#state = 'closed';
    clearTimeout(this.#initTimer);
    this.client.endMessage();
    for (const operation of this.operations.values()) operation.stop();
  }

  /** An internal error closes one socket, and does not end the process. */
  readonly #fail = (error: unknown): void => {
    this.#deps.log('error', 'websocket failed', { reason: toStack(error) });
    this.close({ code: 1011, reason: 'The server failed' });
  };

  #decode(bytes: Buffer): ClientMessage {
    try {
      return this.#protocol.decode(parseJson(bytes));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return this.#protocol.decode(undefined);
    }
  }

  #obey(message: ClientMessage, bytes: number): void {
    switch (message.kind) {
      case 'init':
        return this.#init(message);
      case 'start':
        return this.#start(message, bytes);
      case 'stop':
        return this.#stop(message.id);
      case 'send':
        return this.client.send(message.text);
      case 'close':
        return this.close(message.frame);
      case 'nothing':
        return undefined;
    }
  }

  /** Spec §4.1, R29. A payload that is not an object is ignored. */
  #init({ payload, id }: Extract<ClientMessage, { kind: 'init' }>): void {
    const protocol = this.#protocol;
    if (this.#state === 'ready' && protocol.secondInit) return this.close(protocol.secondInit);
    const init = isObject(payload) ? payload : {};
    if (Object.hasOwn(init, 'rejectMessage')) {
      const { rejectMessage: given } = init;
      const message = typeof given === 'string' ? given : JSON.stringify(given);
      const { text, code, reason } = protocol.rejection(message, id);
      if (text !== undefined) this.client.send(text);
      return this.close({ code, reason });
    }
    clearTimeout(this.#initTimer);
    this.#initTimer = undefined; // a timer and what it would call are 300 bytes
    this.#state = 'ready';
    const authorization = findAuthorization(init);
    if (authorization !== undefined) this.#authorization = toStored(authorization);
    this.client.send(connectionAck);
    this.#startWaiting();
  }

  #start(start: Start, length: number): void {
    const { uninitialised } = this.#protocol;
    const { id, protocol, request } = start;
    if (this.#state === 'new' && uninitialised) return this.close(uninitialised);
    const { bodyBytesMax } = this.#deps.config;
    if (length > bodyBytesMax) return this.client.send(tooLongMessage(start, bodyBytesMax));
    const key = String(id);
    const earlier = this.operations.get(key);
    if (earlier !== undefined && protocol === 'newer') {
      return this.close({ code: 4409, reason: `Subscriber for ${id} already exists` });
    }
    earlier?.stop();
    // Before `connection_init` a socket is read on, so that what waits needs a small share (R47).
    const { memory } = this.client;
    const reservation = this.#state === 'new' ? memory.openLasting() : memory.open();
    const values = request.variables ? Math.min(valueBytesMax, 32 * length) : 0;
    // A character of a text takes up to two bytes.
    if (!reservation.grow(operationBytes + 2 * length + values)) {
      return this.client.send(errorMessage(protocol, id, [toRefusal(poolIsFull())]));
    }
    this.operations.set(key, new SocketOperation(start, reservation, this));
    this.#startWaiting();
  }

  #hasManyWaiting(): boolean {
    let bytes = 0;
    for (const operation of this.operations.values()) bytes += operation.waitingBytes;
    return bytes > waitingBytesMax;
  }

  /** Returns the first operation that has not started, if one more may run. */
  #findNext(): SocketOperation | undefined {
    if (this.#executing >= executingMax || this.client.isBacklogged()) return undefined;
    for (const operation of this.operations.values()) {
      if (operation.request !== undefined) return operation;
    }
    return undefined;
  }

  /** Starts operations that wait. A fault of the service ends this socket alone. */
  #startWaiting(): void {
    if (this.#state !== 'ready' || this.#isStarting) return;
    this.#isStarting = true;
    this.#startAll().catch(this.#fail);
  }

  async #startAll(): Promise<void> {
    const findViewer = () => this.#deps.viewerOf({ header: () => this.#authorization });
    for (let next = this.#findNext(); next !== undefined; next = this.#findNext()) {
      const { hasReaders } = this.#deps.engine;
      const viewer = hasReaders ? await findBefore(findViewer) : findViewer;
      this.#executing += 1;
      const run = next.run(this.#deps, viewer).catch(this.#fail);
      void run.finally(() => {
        this.#executing -= 1;
        this.#startWaiting();
      });
    }
    this.#isStarting = false;
    this.readOn();
  }

  #stop(id: OperationId): void {
    const operation = this.operations.get(String(id));
    operation?.stop();
    // The older protocol confirms a stop; in the newer one nothing may follow.
    if (operation?.protocol === 'older') this.client.send(operation.toComplete());
  }
}

/** Copies what is stored as long as the socket is open; what no token can be is cut. */
function toStored(authorization: string | undefined): string | undefined {
  // Cut it is still longer than a token, so it stays invalid.
  const text = authorization?.slice(0, tokenLengthMax + 'Bearer '.length + 1);
  return text && Buffer.from(text).toString();
}
