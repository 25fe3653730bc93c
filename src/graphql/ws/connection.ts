/**
 * One socket's conversation: initialisation, operations, limits. It knows its protocol and the
 * engine, and reaches the socket through a small port; it never touches a WebSocket.
 */

import { AppError } from '../../errors.ts';
import { isObject, parseJson } from '../../http/json.ts';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import { toPlainError } from '../errors.ts';
import { keptBytesOf, Operation, type OperationDeps, type OperationHost } from './operation.ts';
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

/** The same for all sockets. */
export interface ConnectionDeps extends OperationDeps {
  /** Holds what the operations keep. */
  readonly pool: Pick<MemoryPool, 'open'>;
  /** Milliseconds of any clock that only goes forward. */
  readonly now: () => number;
}

/** What the upgrade request of a socket said. */
export interface Handshake {
  readonly protocol: Protocol;
  readonly authorization: string | undefined;
}

/** Until `connection_init`: clients send it as soon as the socket is open. */
const initTimeoutMilliseconds = 5_000;
/** Far more than a person, or a page that is being loaded, causes. */
const messagesPerSecondMax = 200;
/** In progress on one socket, subscriptions among them: a page has some ten. */
const operationsMax = 100;
/** Bytes that the operations of one socket keep, those included that have not begun. */
const keptBytesMax = 1_048_576;
/** Queries and mutations of one socket that run at a time; the others wait. */
const executingMax = 10;

export class Connection implements OperationHost {
  readonly port: SocketPort;
  readonly #deps: ConnectionDeps;
  readonly #protocol: Protocol;
  /** Only until `connection_init`. */
  #initTimer: NodeJS.Timeout | undefined;
  /** Every operation that the client may still stop, by its id. */
  readonly #operations = new Map<string, Operation>();
  /** Those of them that have not begun, in the order asked. */
  #waiting: Operation[] = [];
  /** Answers that are made, and wait for those before them to be sent. */
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
    this.#authorization = authorization;
    // 4408 is a word of the newer protocol; the older one has none for a client that says nothing.
    const late = { code: 4408, reason: 'Connection initialisation timeout' };
    this.#initTimer = setTimeout(() => this.close(late), initTimeoutMilliseconds).unref();
  }

  /** One message of the client, text or binary (R28). */
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

  /** Counts a message or a ping; false where it was one too many and the socket is closed. */
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

  /** To be called at an interval. The first call after the acknowledgement says nothing (R28). */
  keepAlive(): void {
    const { keepAlive } = this.#protocol;
    if (this.#state !== 'ready' || keepAlive === undefined) return;
    if (this.#keepAliveDue) this.port.send(keepAlive);
    this.#keepAliveDue = true;
  }

  /** To be called when the socket has sent what waited. */
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

  /** The socket is gone or going: lets go of all that was running. */
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

  /** Not by the id alone: a later operation may have it by now. */
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

  /** Spec §4.1, R29. A payload of any other type than an object says nothing. */
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
    // Choice: browsers cannot set headers on a WebSocket, so that the token may come here (R23).
    const authorization = init['Authorization'] ?? init['authorization'];
    if (typeof authorization === 'string') this.#authorization = authorization;
    port.send(connectionAck);
    this.#startWaiting();
  }

  #start(start: Start, messageBytes: number): void {
    const { uninitialised } = this.#protocol;
    const { id, dialect } = start;
    const bytes = messageBytes + keptBytesOf(id);
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
   * One operation in each iteration of the event loop: a subscription that precedes a mutation
   * has joined the topic before the mutation runs, and other sockets are served in between.
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

/** The close reason that clients of the newer protocol expect; the socket truncates it. */
function cutId(id: string): string {
  return `Subscriber for ${id.slice(0, 100)} already exists`;
}
