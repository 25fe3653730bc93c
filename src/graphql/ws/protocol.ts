/**
 * What both sub-protocols share. They are pure functions: a parsed message is decoded to an `Act`,
 * and replies are texts.
 */

import type { GraphqlRequest } from '../engine.ts';
import type { GraphqlError } from '../errors.ts';

/** The protocol of an operation, in which it is answered (R28). */
export type Dialect = 'newer' | 'older';

/** An operation is kept by its id, so that is no text of any length. */
export const idLengthMax = 128;

/** The message of a result is this prefix, the result's JSON, and `}`. */
export function resultPrefix(dialect: Dialect, id: string): string {
  return `{"type":"${dialect === 'newer' ? 'next' : 'data'}","id":${JSON.stringify(id)},"payload":`;
}

export function errorMessage(
  dialect: Dialect,
  id: string,
  errors: readonly GraphqlError[],
): string {
  // R31: a single error is sent as an object, as most servers of the older protocol do.
  const payload = dialect === 'older' && errors.length === 1 ? errors[0] : errors;
  return JSON.stringify({ type: 'error', id, payload });
}

export function completeMessage(id: string): string {
  return JSON.stringify({ type: 'complete', id });
}

/** Code and reason of a close frame. The reason is truncated when it is sent. */
export interface Closing {
  readonly code: number;
  readonly reason: string;
}

/** An operation to run. */
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

/** One sub-protocol. */
export interface Protocol {
  readonly name: 'graphql-transport-ws' | 'graphql-ws';
  /** `message` is any JSON value. Never throws. */
  decode(message: unknown): Act;
  /** The act for a message that is not JSON; `why` is a sentence. */
  unreadable(why: string): Act;
  /** What is sent, and the close code, if `connection_init` is refused (R29). */
  refusal(message: string, id: string | undefined): { readonly text?: string } & Closing;
  /** Sent to a client that is disconnected because it sends too many messages. */
  readonly tooManyMessages: Closing;
  /** If defined, an operation before `connection_init` closes the socket, else it waits (R28). */
  readonly uninitialised: Closing | undefined;
  /** If defined, a second `connection_init` closes the socket, else it is acknowledged again. */
  readonly secondInit: Closing | undefined;
  /** Sent at an interval, so that proxies keep the connection open. */
  readonly keepAlive: string | undefined;
}

/** The same in both protocols. */
export const connectionAck = '{"type":"connection_ack"}';

/** RFC 6455 §5.5.1: a control frame carries 125 bytes, of which two are the code. */
const reasonBytesMax = 123;

/** Truncates `reason` to the limit, without splitting a character. */
export function cutReason(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= reasonBytesMax) return bytes.toString();
  let end = reasonBytesMax;
  // 10xxxxxx is a continuation byte of UTF-8.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}
