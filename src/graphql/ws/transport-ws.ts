/** The newer protocol: sub-protocol `graphql-transport-ws`, as in the library `graphql-ws`. */

import { CloseCode, GRAPHQL_TRANSPORT_WS_PROTOCOL, MessageType, validateMessage } from 'graphql-ws';
import { isObject } from '../../http/json.ts';
import { decodeRequest } from '../http/params.ts';
import { type Act, idLengthMax, type Protocol } from './protocol.ts';

/** A longer payload is left out: a client that does not read must not queue much with pings. */
const pongLengthMax = 4_096;

export const transportWs: Protocol = {
  name: GRAPHQL_TRANSPORT_WS_PROTOCOL,
  decode: (message) => decodeTransport(message) ?? invalid('Invalid message'),
  unreadable: invalid,
  refusal: (message) => ({ code: CloseCode.Forbidden, reason: message }),
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
export function decodeTransport(value: unknown): Act | undefined {
  try {
    return toAct(value);
  } catch {
    // The library's error can repeat the whole message, so it is not passed on.
    return undefined;
  }
}

/** Throws if the message is invalid. */
function toAct(value: unknown): Act | undefined {
  const message = validateMessage(withQuery(value));
  switch (message.type) {
    case MessageType.ConnectionInit:
      return { kind: 'init', id: undefined, payload: message.payload };
    case MessageType.Subscribe: {
      if (message.id.length > idLengthMax) return undefined;
      const request = decodeRequest((value as typeof message).payload);
      return { kind: 'start', id: message.id, request, dialect: 'newer' };
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

/** The library requires a query, which a persisted operation sent by its hash does not have. */
function withQuery(value: unknown): unknown {
  if (!isObject(value) || value['type'] !== MessageType.Subscribe) return value;
  const { payload } = value;
  return isObject(payload)
    ? { ...value, payload: { ...payload, query: payload['query'] ?? '' } }
    : value;
}

function invalid(reason: string): Act {
  return { kind: 'close', closing: { code: CloseCode.BadRequest, reason } };
}
