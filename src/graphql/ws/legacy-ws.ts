/**
 * The older protocol: sub-protocol `graphql-ws`, or none, as in `subscriptions-transport-ws`. It
 * also accepts the message types of the newer protocol (R28). After an invalid message it sends an
 * error and keeps the socket open, as its reference server does.
 */

import { DEPRECATED_GRAPHQL_WS_PROTOCOL } from 'graphql-ws';
import { AppError } from '../../errors.ts';
import { isObject } from '../../http/json.ts';
import { toPlainError } from '../errors.ts';
import { decodeRequest } from '../http/params.ts';
import { type Act, errorMessage, idLengthMax, type Protocol } from './protocol.ts';
import { decodeTransport } from './transport-ws.ts';

type Fields = Readonly<Record<string, unknown>>;

export const legacyWs: Protocol = {
  name: DEPRECATED_GRAPHQL_WS_PROTOCOL,
  decode(message) {
    if (!isObject(message)) return unreadable('A message is a JSON object.');
    switch (message['type']) {
      case 'connection_init':
        return { kind: 'init', id: idOf(message), payload: message['payload'] };
      case 'start':
      case 'stop':
        return decodeOperation(message, message['type']);
      case 'connection_terminate':
        return { kind: 'close', closing: { code: 1000, reason: '' } };
      default:
        return (
          decodeTransport(message) ?? refuse(message, 'The message is not valid in this protocol.')
        );
    }
  },
  unreadable,
  refusal: (message, id) => ({ text: connectionError(message, id), code: 1011, reason: message }),
  tooManyMessages: { code: 1008, reason: 'Too many messages' },
  uninitialised: undefined,
  secondInit: undefined,
  keepAlive: '{"type":"ka"}',
};

function decodeOperation(message: Fields, type: 'start' | 'stop'): Act {
  const id = idOf(message);
  if (id === undefined) {
    return unreadable(
      `A ${type} needs the id of an operation, of at most ${idLengthMax} characters.`,
    );
  }
  if (type === 'stop') return { kind: 'stop', id };
  try {
    return { kind: 'start', id, request: decodeRequest(message['payload']), dialect: 'older' };
  } catch (error) {
    if (error instanceof AppError) return refuse(message, error.message);
    throw error;
  }
}

function idOf({ id }: Fields): string | undefined {
  return typeof id === 'string' && id !== '' && id.length <= idLengthMax ? id : undefined;
}

/** The error names the operation if the message has an id, otherwise it is for the connection. */
function refuse(message: Fields, why: string): Act {
  const id = idOf(message);
  if (id === undefined) return unreadable(why);
  const text = errorMessage('older', id, [toPlainError('BAD_USER_INPUT', why)]);
  return { kind: 'send', text };
}

function unreadable(why: string): Act {
  return { kind: 'send', text: connectionError(why, undefined) };
}

function connectionError(message: string, id: string | undefined): string {
  return JSON.stringify({ type: 'connection_error', id, payload: { message } });
}
