/**
 * The older protocol: sub-protocol `graphql-ws`, or none, as `subscriptions-transport-ws` has it.
 * It understands the verbs of the newer one too (R28). What it cannot use is told to the client
 * and leaves the socket open, as its reference server does.
 */

import { DEPRECATED_GRAPHQL_WS_PROTOCOL } from 'graphql-ws';
import { isObject } from '../../http/json.ts';
import { toPlainError } from '../errors.ts';
import { namesHashOnly, toRequest, type Act, type Dialect, type Protocol } from './protocol.ts';
import { decodeTransport } from './transport-ws.ts';

type Fields = Readonly<Record<string, unknown>>;

const legacyDialect: Dialect = {
  resultPrefix: (id) => `{"type":"data","id":${JSON.stringify(id)},"payload":`,
  // R31: one error as an object, as most servers of this protocol send it, several as an array.
  error: (id, errors) =>
    JSON.stringify({ type: 'error', id, payload: errors.length === 1 ? errors[0] : errors }),
  complete: (id) => JSON.stringify({ type: 'complete', id }),
  confirmsStop: true,
  replacesSameId: true,
};

export const legacyWs: Protocol = {
  name: DEPRECATED_GRAPHQL_WS_PROTOCOL,
  decode(message) {
    if (!isObject(message)) return unreadable('A message is a JSON object.');
    switch (message['type']) {
      case 'connection_init':
        return { kind: 'init', id: idOf(message), payload: message['payload'] };
      case 'start':
        return decodeStart(message);
      case 'stop':
        return decodeStop(message);
      case 'connection_terminate':
        return { kind: 'terminate' };
      default:
        return decodeTransport(message) ?? refuse(message, 'This is no message of the protocol.');
    }
  },
  unreadable,
  refusal: (message, id) => ({
    answer: connectionError(message, id),
    code: 1011,
    reason: message,
  }),
  tooManyMessages: { code: 1008, reason: 'Too many messages' },
  uninitialised: undefined,
  secondInit: undefined,
  keepAlive: '{"type":"ka"}',
};

function decodeStart(message: Fields): Act {
  const id = idOf(message);
  const { payload } = message;
  if (id === undefined) return unreadable('A start needs an id.');
  if (!isObject(payload) || !(typeof payload['query'] === 'string' || namesHashOnly(payload))) {
    return refuse(message, 'A start needs a payload with a query.');
  }
  const { variables, operationName } = payload;
  if (variables !== undefined && variables !== null && !isObject(variables)) {
    return refuse(message, 'The variables must be an object.');
  }
  if (operationName !== undefined && operationName !== null && typeof operationName !== 'string') {
    return refuse(message, 'The operationName must be a string.');
  }
  return { kind: 'start', id, request: toRequest(payload), dialect: legacyDialect };
}

function decodeStop(message: Fields): Act {
  const id = idOf(message);
  return id === undefined ? unreadable('A stop needs an id.') : { kind: 'stop', id };
}

function idOf({ id }: Fields): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** With an id the operation is answered, without one the connection. */
function refuse(message: Fields, why: string): Act {
  const id = idOf(message);
  if (id === undefined) return unreadable(why);
  const errors = [toPlainError('BAD_USER_INPUT', why)];
  return { kind: 'invalid', answer: legacyDialect.error(id, errors) };
}

function unreadable(why: string): Act {
  return { kind: 'invalid', answer: connectionError(why, undefined) };
}

function connectionError(message: string, id: string | undefined): string {
  return JSON.stringify({ type: 'connection_error', id, payload: { message } });
}
