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
import { isEmpty, tryDecode } from '../http/messages.ts';

/** The protocol of an operation, in which it is answered (R28). */
export type OperationProtocol = 'newer' | 'older';

/** As it came, because it is sent back so. On the older protocol it may be a number (R28). */
export type OperationId = string | number;

/** Limit for the id of an operation, which is kept in memory and sent with each event. */
const idLengthMax = 1_024;

/** The message of a result is this prefix, the result's JSON, and `}`. */
export function resultPrefix(protocol: OperationProtocol, id: OperationId): string {
  const type = protocol === 'newer' ? 'next' : 'data';
  return `{"type":"${type}","id":${JSON.stringify(id)},"payload":`;
}

export function errorMessage(
  protocol: OperationProtocol,
  id: OperationId,
  errors: readonly GraphqlError[],
): string {
  const payload = protocol === 'older' ? toOne(errors) : errors;
  return JSON.stringify({ type: 'error', id, payload });
}

/** R28: the first error, with the others in its `extensions`. */
function toOne([first, ...errors]: readonly GraphqlError[]): object | undefined {
  if (first === undefined || errors.length === 0) return first;
  return { ...first, extensions: { ...first.extensions, errors } };
}

export function completeMessage(id: OperationId): string {
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
  readonly id: OperationId;
  readonly request: GraphqlRequest;
  readonly protocol: OperationProtocol;
}

/** What one message of a client asks for. */
export type ClientMessage =
  | Start
  | { readonly kind: 'init'; readonly id: OperationId | undefined; readonly payload: unknown }
  | { readonly kind: 'stop'; readonly id: OperationId }
  | { readonly kind: 'send'; readonly text: string }
  | { readonly kind: 'close'; readonly frame: CloseFrame }
  | { readonly kind: 'nothing' };

/** One sub-protocol. */
export interface Protocol {
  readonly name: 'graphql-transport-ws' | 'graphql-ws';
  /** `message` is any JSON value, or undefined for what is no JSON. Never throws. */
  decode(message: unknown): ClientMessage;
  /** What is sent, and the close code, if `connection_init` is refused (R29). */
  rejection(message: string, id: OperationId | undefined): { readonly text?: string } & CloseFrame;
  /** If defined, an operation before `connection_init` closes the socket, else it waits (R28). */
  readonly uninitialised: CloseFrame | undefined;
  /** If defined, a second `connection_init` closes the socket, else it is acknowledged again. */
  readonly secondInit: CloseFrame | undefined;
  /** Sent at an interval, so that proxies keep the connection open. */
  readonly keepAlive: string | undefined;
}

/** The error of an operation whose message is longer than a body (R28). */
export function tooLongMessage({ protocol, id }: Start, bytesMax: number): string {
  const why = `A message has at most ${bytesMax} bytes (BODY_BYTES_MAX): send files over HTTP.`;
  return errorMessage(protocol, id, [toPlainError('PAYLOAD_TOO_LARGE', why)]);
}

/** The reply to `connection_init`, which is the same in both protocols. */
export const connectionAck = '{"type":"connection_ack"}';

/** A longer pong is sent without payload: pings of a client that does not read queue little. */
const pongLengthMax = 4_096;

/** The newer protocol: sub-protocol `graphql-transport-ws`, as in the library `graphql-ws`. */
export const newerProtocol: Protocol = {
  name: GRAPHQL_TRANSPORT_WS_PROTOCOL,
  decode(message) {
    const decoded = isNewer(message) ? decode(message) : notValid;
    if (typeof decoded !== 'string') return decoded;
    return { kind: 'close', frame: { code: CloseCode.BadRequest, reason: decoded } };
  },
  rejection: (message) => ({ code: CloseCode.Forbidden, reason: message }),
  uninitialised: { code: CloseCode.Unauthorized, reason: 'Unauthorized' },
  secondInit: {
    code: CloseCode.TooManyInitialisationRequests,
    reason: 'Too many initialisation requests',
  },
  // The protocol needs no such message, because WebSocket has pings.
  keepAlive: undefined,
};

/**
 * The older protocol: sub-protocol `graphql-ws`, or none, as in `subscriptions-transport-ws`. It
 * also accepts the message types of the newer protocol (R28). After an invalid message it sends an
 * error and keeps the socket open, as its reference server does.
 */
export const olderProtocol: Protocol = {
  name: DEPRECATED_GRAPHQL_WS_PROTOCOL,
  decode(message) {
    const fields = isObject(message) ? message : {};
    const decoded = decode(fields);
    return typeof decoded === 'string' ? refuse(fields, decoded) : decoded;
  },
  rejection: (message, id) => ({ text: connectionError(message, id), code: 1011, reason: message }),
  uninitialised: undefined,
  secondInit: undefined,
  keepAlive: '{"type":"ka"}',
};

type Fields = Readonly<Record<string, unknown>>;

const notValid = 'The message is not valid: see the protocol.';
const needsId = `An operation needs an id: a number, or a text of ${idLengthMax} characters.`;

/** Whether the library takes it. Its error could repeat the whole message. */
function isNewer(message: unknown): message is Fields {
  if (!isObject(message)) return false;
  // `tryDecode` checks an operation, and takes more: a hash alone, empty values.
  const { type, payload } = message;
  const isStart = type === MessageType.Subscribe && isObject(payload);
  const checked = isStart ? { query: '' } : isEmpty(payload) ? undefined : payload;
  try {
    validateMessage({ ...message, payload: checked });
    return true;
  } catch {
    return false;
  }
}

/** Decodes a message of either protocol, or says why it is not valid. */
function decode(message: Fields): ClientMessage | string {
  const { type, payload } = message;
  const id = idOf(message);
  switch (type) {
    case 'connection_init':
      return { kind: 'init', id, payload };
    case 'start':
    case 'subscribe': {
      if (id === undefined) return needsId;
      const request = tryDecode(payload);
      if (request instanceof AppError) return request.message;
      return { kind: 'start', id, request, protocol: protocolOf(message) };
    }
    case 'stop':
    case 'complete':
      return id === undefined ? needsId : { kind: 'stop', id };
    case 'ping': {
      // Clients take an object or nothing in a pong, whatever they send in a ping.
      const echoed = isObject(payload) ? payload : undefined;
      const text = JSON.stringify({ type: 'pong', payload: echoed });
      return { kind: 'send', text: text.length > pongLengthMax ? '{"type":"pong"}' : text };
    }
    case 'pong':
      return { kind: 'nothing' };
    case 'connection_terminate':
      return { kind: 'close', frame: { code: 1000, reason: '' } };
    default:
      return notValid;
  }
}

/**
 * Choice: the token may be in the payload of `connection_init`, because browsers cannot set headers
 * (R23); in it or in its `headers`, as clients of Hasura have it.
 */
export function findAuthorization(init: Fields): string | undefined {
  return [init, init['headers']]
    .filter(isObject)
    .map((held) => held['Authorization'] ?? held['authorization'])
    .find((value) => typeof value === 'string');
}

function idOf({ id }: Fields): OperationId | undefined {
  const isId = typeof id === 'number' || (typeof id === 'string' && id.length <= idLengthMax);
  return isId ? id : undefined;
}

function protocolOf({ type }: Fields): OperationProtocol {
  return type === 'subscribe' ? 'newer' : 'older';
}

/** With an error of the operation if the message has an id, else with one of the connection. */
function refuse(message: Fields, why: string): ClientMessage {
  const id = idOf(message);
  const errors = [toPlainError('BAD_USER_INPUT', why)];
  const text =
    id === undefined
      ? connectionError(why, undefined)
      : errorMessage(protocolOf(message), id, errors);
  return { kind: 'send', text };
}

function connectionError(message: string, id: OperationId | undefined): string {
  return JSON.stringify({ type: 'connection_error', id, payload: { message } });
}
