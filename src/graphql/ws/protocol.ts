/**
 * What the two sub-protocols have in common. Their cores are pure: a message that was read comes
 * in, what the client wants goes out as a value, and answers are texts.
 */

import type { GraphqlRequest } from '../engine.ts';
import type { GraphqlError } from '../errors.ts';

/** The protocol in which an operation was started, and is answered (R28). */
export type Dialect = 'newer' | 'older';

/** The message of one result is this, then the result's JSON, then `}`. */
export function resultPrefix(dialect: Dialect, id: string): string {
  return `{"type":"${dialect === 'newer' ? 'next' : 'data'}","id":${JSON.stringify(id)},"payload":`;
}

export function errorMessage(
  dialect: Dialect,
  id: string,
  errors: readonly GraphqlError[],
): string {
  // R31: one error as an object, as most servers of the older protocol send it, else an array.
  const payload = dialect === 'older' && errors.length === 1 ? errors[0] : errors;
  return JSON.stringify({ type: 'error', id, payload });
}

export function completeMessage(id: string): string {
  return JSON.stringify({ type: 'complete', id });
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
  | { readonly kind: 'send'; readonly text: string }
  | { readonly kind: 'close'; readonly closing: Closing }
  | { readonly kind: 'nothing' };

/** One sub-protocol of a socket. */
export interface Protocol {
  readonly name: 'graphql-transport-ws' | 'graphql-ws';
  /** `message` is any JSON value. Never throws. */
  decode(message: unknown): Act;
  /** For what is not JSON; `why` is a sentence. */
  unreadable(why: string): Act;
  /** What is said before the socket of a refused `connection_init` closes (R29). */
  refusal(message: string, id: string | undefined): { readonly text?: string } & Closing;
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
