/** The protocol state of one socket: initialisation, operations, limits. */

import { AppError, toStack } from '../../errors.ts';
import { isObject, parseJson } from '../../http/json.ts';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import { toPlainError } from '../errors.ts';
import type { ClientSocket } from './client-socket.ts';
import { toStored } from './handshake.ts';
import {
  operationBytes,
  type OperationDeps,
  type SharedBySession,
  SocketOperation,
  waitingBytesOf,
} from './operation.ts';
import {
  type Act,
  type Closing,
  completeMessage,
  connectionAck,
  errorMessage,
  type Protocol,
  type Start,
} from './protocol.ts';

/** Dependencies that all sockets share. */
export interface SessionDeps extends OperationDeps {
  /** Accounts for the memory of operations. */
  readonly pool: Pick<MemoryPool, 'open'>;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** Values from the upgrade request. */
export interface Handshake {
  readonly protocol: Protocol;
  readonly authorization: string | undefined;
}

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

export class Session {
  readonly #deps: SessionDeps;
  readonly #client: ClientSocket;
  readonly #protocol: Protocol;
  /** Defined until `connection_init` arrives. */
  #initTimer: NodeJS.Timeout | undefined;
  /** The operations that the client can still stop, by id. */
  readonly #operations = new Map<string, SocketOperation>();
  /** Those that have not started, in the order received. */
  #waiting: SocketOperation[] = [];
  readonly #reservation: Reservation;
  #executing = 0;
  #isStartDue = false;
  #state: 'new' | 'ready' | 'closed' = 'new';
  #authorization: string | undefined;
  #second = 0;
  #messages = 0;
  #keepAliveDue = false;
  readonly #shared: SharedBySession;

  constructor(deps: SessionDeps, client: ClientSocket, { protocol, authorization }: Handshake) {
    this.#deps = deps;
    this.#client = client;
    this.#protocol = protocol;
    const whenOver = (operation: SocketOperation, closing?: Closing): void => {
      if (closing === undefined) this.#forget(operation);
      else this.close(closing);
    };
    this.#shared = { client, whenOver };
    this.#reservation = deps.pool.open();
    this.#authorization = toStored(authorization);
    // Both protocols use 4408 here: the older one defines no code for a missing `connection_init`.
    const late = { code: 4408, reason: 'Connection initialisation timeout' };
    this.#initTimer = setTimeout(() => this.close(late), initTimeoutMilliseconds).unref();
  }

  /** Receives one message of the client, text or binary (R28). Never throws. */
  receive(bytes: Buffer): void {
    if (this.#state === 'closed' || !this.countMessage()) return;
    try {
      this.#act(this.#decode(bytes), bytes.length);
    } catch (error) {
      // An internal error closes one socket, and does not end the process.
      this.#deps.log('error', 'websocket failed', { reason: toStack(error) });
      this.close({ code: 1011, reason: 'The server failed' });
    }
    this.#client.pauseIfBacklogged();
  }

  /** Counts a message or ping. Returns false if it exceeds the limit, and the socket was closed. */
  countMessage(): boolean {
    const second = Math.floor(this.#deps.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#messages = 0;
    }
    this.#messages += 1;
    if (this.#messages <= messagesPerSecondMax) return true;
    this.close(this.#protocol.tooManyMessages);
    return false;
  }

  /** Call it at an interval. The first call after the acknowledgement sends nothing (R28). */
  keepAlive(): void {
    const { keepAlive } = this.#protocol;
    if (this.#state !== 'ready' || keepAlive === undefined) return;
    if (this.#keepAliveDue) this.#client.send(keepAlive);
    this.#keepAliveDue = true;
  }

  /** Starts operations that wait. Call it when the client has taken what was queued. */
  resume(): void {
    if (this.#waiting.length > 0) void this.#startAfter(this.#deps.engine.scheduler.yield());
  }

  close(closing: Closing): void {
    if (this.#state === 'closed') return;
    this.end();
    this.#client.close(closing);
  }

  /** Stops all operations; the socket is closed or closing. */
  end(): void {
    this.#state = 'closed';
    clearTimeout(this.#initTimer);
    for (const operation of this.#operations.values()) operation.stop();
    this.#operations.clear();
    this.#waiting = [];
    this.#reservation.release();
  }

  #decode(bytes: Buffer): Act {
    try {
      return this.#protocol.decode(parseJson(bytes));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return this.#protocol.unreadable('The message is not JSON that can be read');
    }
  }

  #act(act: Act, bytes: number): void {
    switch (act.kind) {
      case 'init':
        this.#init(act);
        break;
      case 'start':
        this.#start(act, bytes);
        break;
      case 'stop':
        this.#stop(act.id);
        break;
      case 'send':
        this.#client.send(act.text);
        break;
      case 'close':
        this.close(act.closing);
        break;
      case 'nothing':
        break;
    }
  }

  /** Spec §4.1, R29. A payload that is not an object is ignored. */
  #init({ payload, id }: Extract<Act, { kind: 'init' }>): void {
    const protocol = this.#protocol;
    if (this.#state === 'ready' && protocol.secondInit !== undefined) {
      this.close(protocol.secondInit);
      return;
    }
    const init = isObject(payload) ? payload : {};
    if (Object.hasOwn(init, 'rejectMessage')) {
      const { rejectMessage: given } = init;
      const message = typeof given === 'string' ? given : JSON.stringify(given);
      const { text, code, reason } = protocol.refusal(message, id);
      if (text !== undefined) this.#client.send(text);
      this.close({ code, reason });
      return;
    }
    clearTimeout(this.#initTimer);
    this.#initTimer = undefined;
    this.#state = 'ready';
    // Choice: the token may be in the payload, because browsers cannot set headers (R23).
    const authorization = init['Authorization'] ?? init['authorization'];
    if (typeof authorization === 'string') this.#authorization = toStored(authorization);
    this.#client.send(connectionAck);
    this.#startWaiting();
  }

  #start(start: Start, messageBytes: number): void {
    const { uninitialised } = this.#protocol;
    const { id, dialect } = start;
    if (this.#state === 'new' && uninitialised !== undefined) {
      this.close(uninitialised);
      return;
    }
    if (this.#operations.has(id)) {
      if (dialect === 'newer') {
        this.close({ code: 4409, reason: `Subscriber for ${id} already exists` });
        return;
      }
      this.#remove(id);
    }
    const bytes = waitingBytesOf(start.request, messageBytes);
    const isFull =
      this.#operations.size >= operationsMax || this.#reservation.bytes + bytes > operationBytesMax;
    if (isFull || !this.#reservation.grow(bytes)) {
      const message = 'Too many operations are under way on this connection.';
      const error = toPlainError('PAYLOAD_TOO_LARGE', message);
      this.#client.send(errorMessage(dialect, id, [error]));
      return;
    }
    const operation = new SocketOperation(start, bytes, this.#shared);
    this.#operations.set(id, operation);
    if (this.#waiting.push(operation) > 1 || !this.#mayStart()) return;
    // To read and check its document may take long.
    const turn = this.#deps.engine.scheduler.turn();
    if (turn === undefined) this.#startWaiting();
    else void this.#startAfter(turn);
  }

  async #startAfter(turn: Promise<void>): Promise<void> {
    if (this.#isStartDue) return;
    this.#isStartDue = true;
    await turn;
    this.#isStartDue = false;
    this.#startWaiting();
  }

  #mayStart(): boolean {
    const isFree = this.#executing < executingMax && !this.#client.isBacklogged();
    return this.#state === 'ready' && isFree;
  }

  /**
   * Starts one operation per iteration of the event loop: a subscription then has joined its topic
   * before a mutation after it runs, and other sockets are served in between.
   */
  #startWaiting(): void {
    if (!this.#mayStart()) return;
    const operation = this.#waiting.shift();
    if (operation === undefined) return;
    this.#run(operation);
    this.resume();
  }

  #run(operation: SocketOperation): void {
    const executed = operation.run(this.#deps, this.#authorization);
    if (executed === undefined) {
      // A subscription that goes on has dropped its message.
      if (this.#operations.get(operation.id) === operation) this.#count(operation, operationBytes);
      return;
    }
    this.#executing += 1;
    void executed.finally(() => {
      this.#executing -= 1;
      this.resume();
    });
  }

  #stop(id: string): void {
    const operation = this.#remove(id);
    // The older protocol confirms a stop; in the newer one nothing may follow.
    if (operation?.dialect === 'older') this.#client.send(completeMessage(id));
  }

  #remove(id: string): SocketOperation | undefined {
    const operation = this.#operations.get(id);
    if (operation === undefined) return undefined;
    operation.stop();
    this.#forget(operation);
    const place = this.#waiting.indexOf(operation);
    if (place !== -1) this.#waiting.splice(place, 1);
    return operation;
  }

  /** The objects are compared too: a later operation may have the same id. */
  #forget(operation: SocketOperation): void {
    if (this.#operations.get(operation.id) !== operation) return;
    this.#operations.delete(operation.id);
    this.#count(operation, 0);
  }

  #count(operation: SocketOperation, bytes: number): void {
    this.#reservation.set(this.#reservation.bytes - operation.bytes + bytes);
    operation.bytes = bytes;
  }
}
