/**
 * What the two sub-protocols have in common. Their cores are pure: a message that was read comes
 * in, what the client wants goes out as a value, and answers are texts.
 */

import { isObject } from '../../http/json.ts';
import type { GraphqlRequest } from '../engine.ts';
import type { GraphqlError } from '../errors.ts';

/** The messages of an operation, in the protocol in which it was started (R28). */
export interface Dialect {
  /** The message of one result is this, then the result's JSON, then `}`. */
  resultPrefix(id: string): string;
  error(id: string, errors: readonly GraphqlError[]): string;
  complete(id: string): string;
  /** The older protocol confirms a stop with `complete`; in the newer one nothing may follow. */
  readonly confirmsStop: boolean;
  /** A second operation under an id that is in use: the newer protocol closes the socket. */
  readonly replacesSameId: boolean;
}

/** Why and how a socket is closed. The reason is cut where it is sent. */
export interface Closing {
  readonly code: number;
  readonly reason: string;
}

/** An operation that a client wants to run. */
export interface Start {
  readonly kind: 'start';
  readonly id: string;
  readonly request: GraphqlRequest;
  readonly dialect: Dialect;
}

/** What one message of a client asks for. */
export type Act =
  | Start
  | { readonly kind: 'init'; readonly id: string | undefined; readonly payload: unknown }
  | { readonly kind: 'stop'; readonly id: string }
  /** `answer` is the pong. */
  | { readonly kind: 'ping'; readonly answer: string }
  | { readonly kind: 'pong' }
  | { readonly kind: 'terminate' }
  /** Not a message of the protocol: what is sent, and whether the socket ends with it. */
  | { readonly kind: 'invalid'; readonly answer?: string; readonly closing?: Closing };

/** One sub-protocol of a socket. */
export interface Protocol {
  readonly name: 'graphql-transport-ws' | 'graphql-ws';
  /** `message` is any JSON value. Never throws. */
  decode(message: unknown): Act;
  /** For what is not JSON; `why` is a sentence. */
  unreadable(why: string): Act;
  /** What is said before the socket of a refused `connection_init` closes (R29). */
  refusal(message: string, id: string | undefined): { readonly answer?: string } & Closing;
  /** What a client is told that is closed because it sends too many messages. */
  readonly tooManyMessages: Closing;
  /** An operation before any `connection_init` closes the socket, or waits for one (R28). */
  readonly uninitialised: Closing | undefined;
  /** A second `connection_init` closes the socket, or is acknowledged again. */
  readonly secondInit: Closing | undefined;
  /** Sent now and then so that proxies keep the connection. */
  readonly keepAlive: string | undefined;
}

/** The same in both protocols. */
export const connectionAck = '{"type":"connection_ack"}';

/** RFC 6455 §5.5.1: a control frame carries 125 bytes, two of them are the code. */
const reasonBytesMax = 123;

/** The longest beginning of `reason` that fits, without half a character. */
export function cutReason(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= reasonBytesMax) return bytes.toString();
  let end = reasonBytesMax;
  // 10xxxxxx: not the first byte of a character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

/** A persisted document by its hash alone: both protocols were written before there were any. */
export function namesHashOnly(payload: Readonly<Record<string, unknown>>): boolean {
  const { query, extensions } = payload;
  return query == null && isObject(extensions) && extensions['persistedQuery'] !== undefined;
}

/** What was checked by the protocol: each of its type, null or absent. */
export function toRequest(payload: Readonly<Record<string, unknown>>): GraphqlRequest {
  const { query, operationName, variables, extensions } = payload;
  return {
    query: typeof query === 'string' ? query : undefined,
    operationName: typeof operationName === 'string' ? operationName : undefined,
    variables: isObject(variables) ? variables : undefined,
    extensions: isObject(extensions) ? extensions : undefined,
  };
}
