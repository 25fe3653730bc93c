/**
 * Both sub-protocols of WebSocket as data and pure functions: a parsed message is decoded to a
 * `ClientMessage`, and replies are texts. The older protocol also accepts each message of the newer
 * one (R28). `session.ts` has the order of messages.
 *
 * | newer             | older                  | `kind`    | reply                          |
 * | ----------------- | ---------------------- | --------- | ------------------------------ |
 * | `connection_init` | `connection_init`      | `init`    | `connection_ack`, or rejection |
 * | `subscribe`       | `start`                | `start`   | each `next` (older: `data`),   |
 * |                   |                        |           | then `complete`; or `error`    |
 * | `complete`        | `stop`                 | `stop`    | none (older: `complete`)       |
 * | `ping`            |                        | `send`    | `pong`                         |
 * | `pong`            |                        | `nothing` | none                           |
 * |                   | `connection_terminate` | `close`   | close frame 1000               |
 * | anything else     |                        | `close`   | close frame 4400               |
 * |                   | anything else          | `send`    | `error` or `connection_error`  |
 */

import {
  CloseCode,
  DEPRECATED_GRAPHQL_WS_PROTOCOL,
  GRAPHQL_TRANSPORT_WS_PROTOCOL,
  MessageType,
  validateMessage,
} from 'graphql-ws';
import { AppError } from '../../errors.ts';
import { isObject } from '../../http/json.ts';
import type { GraphqlRequest } from '../documents/documents.ts';
import { type GraphqlError, toPlainError } from '../errors.ts';
import { decodeRequest } from '../http/messages.ts';

/** The protocol of an operation, in which it is answered (R28). */
export type OperationProtocol = 'newer' | 'older';

/** Limit for the id of an operation, by which the operation is kept in memory. */
const idLengthMax = 128;

/** The message of a result is this prefix, the result's JSON, and `}`. */
export function resultPrefix(protocol: OperationProtocol, id: string): string {
  const type = protocol === 'newer' ? 'next' : 'data';
  return `{"type":"${type}","id":${JSON.stringify(id)},"payload":`;
}

export function errorMessage(
  protocol: OperationProtocol,
  id: string,
  errors: readonly GraphqlError[],
): string {
  // R31: a single error is sent as an object, as most servers of the older protocol do.
  const payload = protocol === 'older' && errors.length === 1 ? errors[0] : errors;
  return JSON.stringify({ type: 'error', id, payload });
}

export function completeMessage(id: string): string {
  return JSON.stringify({ type: 'complete', id });
}

/** Code and reason of a close frame. The reason is truncated when it is sent. */
export interface CloseFrame {
  readonly code: number;
  readonly reason: string;
}

/** An operation to run. */
export interface Start {
  readonly kind: 'start';
  readonly id: string;
  readonly request: GraphqlRequest;
  readonly protocol: OperationProtocol;
}

/** What one message of a client asks for. */
export type ClientMessage =
  | Start
  | { readonly kind: 'init'; readonly id: string | undefined; readonly payload: unknown }
  | { readonly kind: 'stop'; readonly id: string }
  | { readonly kind: 'send'; readonly text: string }
  | { readonly kind: 'close'; readonly frame: CloseFrame }
  | { readonly kind: 'nothing' };

/** One sub-protocol. */
export interface Protocol {
  readonly name: 'graphql-transport-ws' | 'graphql-ws';
  /** `message` is any JSON value. Never throws. */
  decode(message: unknown): ClientMessage;
  /** What follows from a message that is not JSON; `why` is a sentence. */
  unreadable(why: string): ClientMessage;
  /** What is sent, and the close code, if `connection_init` is refused (R29). */
  rejection(message: string, id: string | undefined): { readonly text?: string } & CloseFrame;
  /** Sent to a client that is disconnected because it sends too many messages. */
  readonly tooManyMessages: CloseFrame;
  /** If defined, an operation before `connection_init` closes the socket, else it waits (R28). */
  readonly uninitialised: CloseFrame | undefined;
  /** If defined, a second `connection_init` closes the socket, else it is acknowledged again. */
  readonly secondInit: CloseFrame | undefined;
  /** Sent at an interval, so that proxies keep the connection open. */
  readonly keepAlive: string | undefined;
}

/** The reply to `connection_init`, which is the same in both protocols. */
export const connectionAck = '{"type":"connection_ack"}';

/** A longer pong is sent without payload: pings of a client that does not read queue little. */
const pongLengthMax = 4_096;

/** The newer protocol: sub-protocol `graphql-transport-ws`, as in the library `graphql-ws`. */
export const newerProtocol: Protocol = {
  name: GRAPHQL_TRANSPORT_WS_PROTOCOL,
  decode: (message) => decodeNewer(message) ?? invalid('Invalid message'),
  unreadable: invalid,
  rejection: (message) => ({ code: CloseCode.Forbidden, reason: message }),
  tooManyMessages: { code: 4429, reason: 'Too many messages' },
  uninitialised: { code: CloseCode.Unauthorized, reason: 'Unauthorized' },
  secondInit: {
    code: CloseCode.TooManyInitialisationRequests,
    reason: 'Too many initialisation requests',
  },
  // The protocol needs no such message, because WebSocket has pings.
  keepAlive: undefined,
};

/** Decodes a message of the newer protocol; undefined if it is invalid. */
function decodeNewer(value: unknown): ClientMessage | undefined {
  const message = validate(withQuery(value));
  if (message === undefined) return undefined;
  switch (message.type) {
    case MessageType.ConnectionInit:
      return { kind: 'init', id: undefined, payload: message.payload };
    case MessageType.Subscribe: {
      if (message.id.length > idLengthMax) return undefined;
      const request = tryDecode((value as typeof message).payload);
      if (request instanceof AppError) return undefined;
      return { kind: 'start', id: message.id, request, protocol: 'newer' };
    }
    case MessageType.Complete:
      return { kind: 'stop', id: message.id };
    case MessageType.Ping: {
      const pong = { type: MessageType.Pong };
      const text = JSON.stringify({ ...pong, payload: message.payload });
      return { kind: 'send', text: text.length > pongLengthMax ? JSON.stringify(pong) : text };
    }
    case MessageType.Pong:
      return { kind: 'nothing' };
    case MessageType.ConnectionAck:
    case MessageType.Next:
    case MessageType.Error:
    default:
      return undefined;
  }
}

/** Undefined for a message that the library refuses: the error could repeat the whole message. */
function validate(message: unknown): ReturnType<typeof validateMessage> | undefined {
  try {
    return validateMessage(message);
  } catch {
    return undefined;
  }
}

/** Returns the request, or why it is refused. */
function tryDecode(payload: unknown): GraphqlRequest | AppError {
  try {
    return decodeRequest(payload);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** The library requires a query, which a persisted operation sent by its hash does not have. */
function withQuery(value: unknown): unknown {
  if (!isObject(value) || value['type'] !== MessageType.Subscribe) return value;
  const { payload } = value;
  return isObject(payload)
    ? { ...value, payload: { ...payload, query: payload['query'] ?? '' } }
    : value;
}

function invalid(reason: string): ClientMessage {
  return { kind: 'close', frame: { code: CloseCode.BadRequest, reason } };
}

/**
 * The older protocol: sub-protocol `graphql-ws`, or none, as in `subscriptions-transport-ws`. It
 * also accepts the message types of the newer protocol (R28). After an invalid message it sends an
 * error and keeps the socket open, as its reference server does.
 */
export const olderProtocol: Protocol = {
  name: DEPRECATED_GRAPHQL_WS_PROTOCOL,
  decode(message) {
    if (!isObject(message)) return unreadable('A message is a JSON object.');
    switch (message['type']) {
      case 'connection_init':
        return { kind: 'init', id: idOf(message), payload: message['payload'] };
      case 'start':
      case 'stop':
        return decodeOlderOperation(message, message['type']);
      case 'connection_terminate':
        return { kind: 'close', frame: { code: 1000, reason: '' } };
      default:
        return (
          decodeNewer(message) ?? refuse(message, 'The message is not valid in this protocol.')
        );
    }
  },
  unreadable,
  rejection: (message, id) => ({ text: connectionError(message, id), code: 1011, reason: message }),
  tooManyMessages: { code: 1008, reason: 'Too many messages' },
  uninitialised: undefined,
  secondInit: undefined,
  keepAlive: '{"type":"ka"}',
};

type Fields = Readonly<Record<string, unknown>>;

function decodeOlderOperation(message: Fields, type: 'start' | 'stop'): ClientMessage {
  const id = idOf(message);
  if (id === undefined) {
    return unreadable(
      `A ${type} needs the id of an operation, of at most ${idLengthMax} characters.`,
    );
  }
  if (type === 'stop') return { kind: 'stop', id };
  const request = tryDecode(message['payload']);
  if (request instanceof AppError) return refuse(message, request.message);
  return { kind: 'start', id, request, protocol: 'older' };
}

function idOf({ id }: Fields): string | undefined {
  return typeof id === 'string' && id !== '' && id.length <= idLengthMax ? id : undefined;
}

/** With an error of the operation if the message has an id, else with one of the connection. */
function refuse(message: Fields, why: string): ClientMessage {
  const id = idOf(message);
  if (id === undefined) return unreadable(why);
  const text = errorMessage('older', id, [toPlainError('BAD_USER_INPUT', why)]);
  return { kind: 'send', text };
}

function unreadable(why: string): ClientMessage {
  return { kind: 'send', text: connectionError(why, undefined) };
}

function connectionError(message: string, id: string | undefined): string {
  return JSON.stringify({ type: 'connection_error', id, payload: { message } });
}
