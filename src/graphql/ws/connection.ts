/**
 * The protocol state of one socket: initialisation, operations, limits. It reaches the socket
 * through `SocketPort` and never touches a WebSocket.
 */

import { tokenLengthMax } from '../../auth/jwt.ts';
import { AppError } from '../../errors.ts';
import { isObject, parseJson } from '../../http/json.ts';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import { toPlainError } from '../errors.ts';
import { Operation, type OperationDeps, type OperationHost, waitingBytesOf } from './operation.ts';
import {
  type Act,
  type Closing,
  completeMessage,
  connectionAck,
  errorMessage,
  type Protocol,
  type Start,
} from './protocol.ts';
import type { SocketPort } from './socket-port.ts';

/** Dependencies that all sockets share. */
export interface ConnectionDeps extends OperationDeps {
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
const keptBytesMax = 1_048_576;
/** Queries and mutations of one socket that may run at the same time; others wait. */
const executingMax = 10;

export class Connection implements OperationHost {
  readonly port: SocketPort;
  readonly #deps: ConnectionDeps;
  readonly #protocol: Protocol;
  /** Defined until `connection_init` arrives. */
  #initTimer: NodeJS.Timeout | undefined;
  /** The operations that the client can still stop, by id. */
  readonly #operations = new Map<string, Operation>();
  /** Those that have not started, in the order received. */
  #waiting: Operation[] = [];
  /** Resolve functions of finished operations that wait until earlier results were sent. */
  #parked: (() => void)[] = [];
  readonly #kept: Reservation;
  #executing = 0;
  #nextStart: NodeJS.Immediate | undefined;
  #state: 'new' | 'ready' | 'closed' = 'new';
  #authorization: string | undefined;
  #second = 0;
  #messages = 0;
  #keepAliveDue = false;

  constructor(deps: ConnectionDeps, port: SocketPort, { protocol, authorization }: Handshake) {
    this.port = port;
    this.#deps = deps;
    this.#protocol = protocol;
    this.#kept = deps.pool.open();
    this.#authorization = toStored(authorization);
    // Both protocols use 4408 here: the older one defines no code for a missing `connection_init`.
    const late = { code: 4408, reason: 'Connection initialisation timeout' };
    this.#initTimer = setTimeout(() => this.close(late), initTimeoutMilliseconds).unref();
  }

  /** Receives one message of the client, text or binary (R28). */
  receive(bytes: Buffer): void {
    if (this.#state === 'closed' || !this.countMessage()) return;
    let act: Act;
    try {
      act = this.#protocol.decode(parseJson(bytes));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      act = this.#protocol.unreadable('The message is not JSON that can be read');
    }
    this.#act(act, bytes.length);
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
    if (this.#keepAliveDue) this.port.send(keepAlive);
    this.#keepAliveDue = true;
  }

  /** Call it when the socket has sent its queue. */
  drained(): void {
    if (!this.port.isBacklogged()) this.#parked.shift()?.();
    if (this.#waiting.length === 0) return;
    this.#nextStart ??= setImmediate(() => {
      this.#nextStart = undefined;
      this.#startWaiting();
    });
  }

  close(closing: Closing): void {
    if (this.#state === 'closed') return;
    this.ended();
    this.port.close(closing);
  }

  /** Stops all operations; the socket is closed or closing. */
  ended(): void {
    this.#state = 'closed';
    clearTimeout(this.#initTimer);
    clearImmediate(this.#nextStart);
    for (const operation of this.#operations.values()) operation.stop();
    this.#operations.clear();
    this.#waiting = [];
    this.#kept.release();
    const parked = this.#parked;
    this.#parked = [];
    for (const go of parked) go();
  }

  room(): Promise<void> {
    return new Promise((resolve) => void this.#parked.push(resolve));
  }

  began(operation: Operation, bytes: number): void {
    this.#kept.set(this.#kept.bytes - operation.bytes + bytes);
    operation.bytes = bytes;
  }

  /** The objects are compared too: a later operation may have the same id. */
  finished(operation: Operation): void {
    if (this.#operations.get(operation.id) !== operation) return;
    this.#operations.delete(operation.id);
    this.#kept.set(this.#kept.bytes - operation.bytes);
  }

  executing(change: 1 | -1): void {
    this.#executing += change;
    if (change === -1) this.drained();
  }

  overloaded(reason: string): void {
    this.close({ code: 1013, reason });
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
        this.port.send(act.text);
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
    const [protocol, port] = [this.#protocol, this.port];
    if (this.#state === 'ready' && protocol.secondInit !== undefined) {
      this.close(protocol.secondInit);
      return;
    }
    const init = isObject(payload) ? payload : {};
    if (Object.hasOwn(init, 'rejectMessage')) {
      const { rejectMessage: given } = init;
      const message = typeof given === 'string' ? given : JSON.stringify(given);
      const { text, code, reason } = protocol.refusal(message, id);
      if (text !== undefined) port.send(text);
      this.close({ code, reason });
      return;
    }
    clearTimeout(this.#initTimer);
    this.#initTimer = undefined;
    this.#state = 'ready';
    // Choice: the token may be in the payload, because browsers cannot set headers (R23).
    const authorization = init['Authorization'] ?? init['authorization'];
    if (typeof authorization === 'string') this.#authorization = toStored(authorization);
    port.send(connectionAck);
    this.#startWaiting();
  }

  #start(start: Start, messageBytes: number): void {
    const { uninitialised } = this.#protocol;
    const { id, dialect } = start;
    const bytes = waitingBytesOf(start.request, messageBytes);
    if (this.#state === 'new' && uninitialised !== undefined) {
      this.close(uninitialised);
      return;
    }
    if (this.#operations.has(id)) {
      if (dialect === 'newer') {
        this.close({ code: 4409, reason: cutId(id) });
        return;
      }
      this.#remove(id);
    }
    const full = this.#operations.size >= operationsMax || this.#kept.bytes + bytes > keptBytesMax;
    if (full || !this.#kept.grow(bytes)) {
      const message = 'Too many operations are under way on this connection.';
      this.port.send(errorMessage(dialect, id, [toPlainError('PAYLOAD_TOO_LARGE', message)]));
      return;
    }
    const operation = new Operation(start, bytes, this);
    this.#operations.set(id, operation);
    if (this.#mayStart() && this.#waiting.length === 0) this.#run(operation);
    else this.#waiting.push(operation);
  }

  #mayStart(): boolean {
    return this.#state === 'ready' && this.#executing < executingMax && !this.port.isBacklogged();
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
    this.drained();
  }

  #run(operation: Operation): void {
    operation.run(this.#deps, this.#authorization);
  }

  #stop(id: string): void {
    const operation = this.#remove(id);
    // The older protocol confirms a stop; in the newer one nothing may follow.
    if (operation?.dialect === 'older') this.port.send(completeMessage(id));
  }

  #remove(id: string): Operation | undefined {
    const operation = this.#operations.get(id);
    if (operation === undefined) return undefined;
    operation.stop();
    this.finished(operation);
    const place = this.#waiting.indexOf(operation);
    if (place !== -1) this.#waiting.splice(place, 1);
    return operation;
  }
}

/** Copies what is stored as long as the socket is open; what no token can be is cut. */
function toStored(authorization: string | undefined): string | undefined {
  // Cut it is still longer than a token, so it stays invalid.
  const text = authorization?.slice(0, tokenLengthMax + 'Bearer '.length + 1);
  return text && Buffer.from(text).toString();
}

/** The close reason that clients of the newer protocol expect; the socket truncates it. */
function cutId(id: string): string {
  return `Subscriber for ${id} already exists`;
}
