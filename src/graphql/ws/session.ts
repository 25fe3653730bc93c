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
 *    the scheduler; until it is read nothing more is read from the socket.
 * 2. Before the acknowledgement `subscribe` closes the socket in the newer protocol (4401), and
 *    waits in the older one. Both close it 5 s after the upgrade (4408).
 * 3. Operations start in the order received: a subscription has joined its group before a mutation
 *    after it runs. At most 10 queries and mutations run, and none starts while more is queued for
 *    the client than may be. For example, of 12 queries the 11th starts when the client has taken
 *    the result of one of the first 10.
 * 4. A fault of an operation ends this operation (`error`); a fault of the protocol, a client that
 *    does not read, and too many messages end the socket.
 */

import { findBefore } from '../../auth/access.ts';
import { tokenLengthMax } from '../../auth/jwt.ts';
import { AppError, toStack } from '../../errors.ts';
import { isObject, parseJson } from '../../http/json.ts';
import { poolIsFull } from '../../memory-pool.ts';
import { toPlainError, toRefusal } from '../errors.ts';
import type { ClientSocket } from './client-socket.ts';
import { operationBytes, type SocketDeps, SocketOperation } from './operation.ts';
import {
  type ClientMessage,
  type CloseFrame,
  completeMessage,
  connectionAck,
  errorMessage,
  type Protocol,
  type Start,
} from './protocols.ts';

/** Timeout for `connection_init`, which clients send as soon as the socket is open. */
const initTimeoutMilliseconds = 5_000;
/** Far more than a user, or a page that is loading, causes. */
const messagesPerSecondMax = 200;
/** Active operations of one socket, including subscriptions: a page has about ten. */
const operationsMax = 100;
/** Memory of the operations of one socket, including those that wait to start, in bytes. */
const operationBytesMax = 1_048_576;
/** Queries and mutations of one socket that may run at the same time; others wait. */
const executingMax = 10;

/** Longer messages are read in turns of the event loop; until then they wait as bytes. */
const smallMessageBytes = 512;
const full: CloseFrame = { code: 1013, reason: 'The server is serving too much at once' };
const tooManyOperations = toPlainError(
  'PAYLOAD_TOO_LARGE',
  'Too many operations are under way on this connection.',
);

/** Approximate memory of a value of the variables, in bytes: an empty object takes the most. */
const valueBytes = 64;
/** The decoder accepts no more (`variableValuesMax`), and each is at least two bytes of JSON. */
const valuesMax = 1_000;

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
  #second = 0;
  #messages = 0;
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
    if (this.#state === 'closed' || !this.countMessage()) return;
    if (bytes.length <= smallMessageBytes && this.#unread === 0) return this.#read(bytes);
    const memory = this.client.memory.open();
    if (!memory.grow(bytes.length)) return this.close(full);
    this.#unread += 1;
    this.client.pause();
    void this.#deps.engine.scheduler.run(() => {
      memory.release();
      this.#unread -= 1;
      if (this.#unread === 0) this.client.resume();
      if (this.#state !== 'closed') this.#read(bytes);
    });
  }

  #read(bytes: Buffer): void {
    try {
      this.#obey(this.#decode(bytes), bytes.length);
    } catch (error) {
      this.#fail(error);
    }
    // What a client that does not read asks for would only be queued.
    if (this.client.isBacklogged()) this.client.pause();
  }

  /**
   * Notes that the client is there, and counts a message, ping or pong. Returns false if the client
   * has sent too many: the socket is closed then.
   */
  countMessage(): boolean {
    this.client.isHeard = true;
    const second = Math.floor(this.#deps.now() / 1000);
    if (second !== this.#second) this.#messages = 0;
    this.#second = second;
    this.#messages += 1;
    if (this.#messages <= messagesPerSecondMax) return true;
    this.close(this.#protocol.tooManyMessages);
    return false;
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
    this.client.resume();
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
      return this.#protocol.unreadable('The message is not JSON that can be read');
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
    // Choice: the token may be in the payload, because browsers cannot set headers (R23).
    const authorization = init['Authorization'] ?? init['authorization'];
    if (typeof authorization === 'string') this.#authorization = toStored(authorization);
    this.client.send(connectionAck);
    this.#startWaiting();
  }

  #start(start: Start, messageBytes: number): void {
    const { uninitialised } = this.#protocol;
    const { id, protocol, request } = start;
    if (this.#state === 'new' && uninitialised) return this.close(uninitialised);
    const earlier = this.operations.get(id);
    if (earlier !== undefined && protocol === 'newer') {
      return this.close({ code: 4409, reason: `Subscriber for ${id} already exists` });
    }
    earlier?.stop();
    const reservation = this.client.memory.openLasting();
    const values = request.variables ? Math.min(valuesMax, messageBytes / 2) : 0;
    // A character of a text takes up to two bytes.
    const bytes = operationBytes + 2 * messageBytes + values * valueBytes;
    const hasRoom = this.#hasRoom(bytes);
    if (!hasRoom || !reservation.grow(bytes)) {
      const error = hasRoom ? toRefusal(poolIsFull()) : tooManyOperations;
      return this.client.send(errorMessage(protocol, id, [error]));
    }
    this.operations.set(id, new SocketOperation(start, reservation, this));
    this.#startWaiting();
  }

  #hasRoom(bytes: number): boolean {
    let sum = bytes;
    for (const { reservation } of this.operations.values()) sum += reservation.bytes;
    return this.operations.size < operationsMax && sum <= operationBytesMax;
  }

  /** Returns the first operation that has not started, if one more may run. */
  #findNext(): SocketOperation | undefined {
    if (this.#executing >= executingMax || this.client.isBacklogged()) return undefined;
    return Array.from(this.operations.values()).find(({ request }) => request !== undefined);
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
      const { hasOwners } = this.#deps.engine;
      const viewer = hasOwners ? await findBefore(findViewer) : findViewer;
      this.#executing += 1;
      const run = next.run(this.#deps, viewer).catch(this.#fail);
      void run.finally(() => {
        this.#executing -= 1;
        this.#startWaiting();
      });
    }
    this.#isStarting = false;
  }

  #stop(id: string): void {
    const operation = this.operations.get(id);
    operation?.stop();
    // The older protocol confirms a stop; in the newer one nothing may follow.
    if (operation?.protocol === 'older') this.client.send(completeMessage(id));
  }
}

/** Copies what is stored as long as the socket is open; what no token can be is cut. */
function toStored(authorization: string | undefined): string | undefined {
  // Cut it is still longer than a token, so it stays invalid.
  const text = authorization?.slice(0, tokenLengthMax + 'Bearer '.length + 1);
  return text && Buffer.from(text).toString();
}
