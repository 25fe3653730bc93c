/** The newer protocol: sub-protocol `graphql-transport-ws`, as the `graphql-ws` library has it. */

import {
  CloseCode,
  GRAPHQL_TRANSPORT_WS_PROTOCOL,
  MessageType,
  validateMessage,
  type Message,
} from 'graphql-ws';
import { isObject } from '../../http/json.ts';
import { namesHashOnly, toRequest, type Act, type Dialect, type Protocol } from './protocol.ts';

const transportDialect: Dialect = {
  resultPrefix: (id) => `{"id":${JSON.stringify(id)},"type":"${MessageType.Next}","payload":`,
  error: (id, errors) => JSON.stringify({ id, type: MessageType.Error, payload: errors }),
  complete: (id) => JSON.stringify({ id, type: MessageType.Complete }),
  confirmsStop: false,
  replacesSameId: false,
};

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
  // The protocol has no such message; the pings of WebSocket itself do the work.
  keepAlive: undefined,
};

/** What a message of the newer protocol asks for; undefined where no client sends such a one. */
export function decodeTransport(value: unknown): Act | undefined {
  const byHash = isObject(value) && isObject(value['payload']) && namesHashOnly(value['payload']);
  const message = check(byHash ? withQuery(value) : value);
  switch (message?.type) {
    case MessageType.ConnectionInit:
      return { kind: 'init', id: undefined, payload: message.payload };
    case MessageType.Subscribe: {
      const request = toRequest({ ...message.payload, ...(byHash && { query: undefined }) });
      return { kind: 'start', id: message.id, request, dialect: transportDialect };
    }
    case MessageType.Complete:
      return { kind: 'stop', id: message.id };
    case MessageType.Ping: {
      const { payload } = message;
      const pong = payload === undefined ? {} : { payload };
      return { kind: 'ping', answer: JSON.stringify({ type: MessageType.Pong, ...pong }) };
    }
    case MessageType.Pong:
      return { kind: 'pong' };
    case MessageType.ConnectionAck:
    case MessageType.Next:
    case MessageType.Error:
    case undefined:
    default:
      return undefined;
  }
}

/** Only for the library's check, which asks for a query. */
function withQuery(message: Readonly<Record<string, unknown>>): unknown {
  return { ...message, payload: { ...(message['payload'] as object), query: '' } };
}

/** The library's error can repeat the whole message, so it is not passed on. */
function check(value: unknown): Message | undefined {
  try {
    return validateMessage(value);
  } catch {
    return undefined;
  }
}

function invalid(reason: string): Act {
  return { kind: 'invalid', closing: { code: CloseCode.BadRequest, reason } };
}
