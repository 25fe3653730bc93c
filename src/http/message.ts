/**
 * What a handler sees of HTTP: a request as plain values, and a reply as a value to give back.
 * No handler touches a socket; only `listener.ts` turns these into bytes.
 */

import type { Readable } from 'node:stream';
import type { MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool } from '../memory-pool.ts';

/** One request. Nothing in it changes while the request lives. */
export interface HttpRequest {
  /** The request id, also sent back as `X-Request-Id` and written into every log line. */
  readonly id: string;
  readonly method: string;
  /** The path as it was sent, still percent-encoded, without the query. */
  readonly path: string;
  /** What follows the first `?`, still percent-encoded; empty where there is none. */
  readonly query: string;
  /** The path's parameters by their name in the route, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The connection's, which may be a proxy's (R34); empty where the socket is already gone. */
  readonly remoteAddress: string;
  /** The value of `Host`, checked (RFC 9112 §3.2). */
  readonly host: string;
  /** A header by its lower-case name; repeated ones joined or refused as RFC 9110 has it. */
  header(name: string): string | undefined;
  /**
   * The whole body. More than `bytesMax` bytes: `content_too_large`. A body that ends early
   * rejects and is answered to nobody.
   */
  readBody(bytesMax: number): Promise<Buffer>;
  /**
   * Gives the body to `sink` while it comes, for endpoints that must not hold it in memory. Nothing
   * is given before this returns.
   */
  streamBody(sink: BodySink): BodyFlow;
}

/** Takes a body while it comes. Must not throw. */
export interface BodySink {
  take(bytes: Buffer): void;
  /** The last call, unless it is `cut`. */
  end(): void;
  /** The last call: the client went away before its body was whole. */
  cut(): void;
}

/** Where a sink has its bytes from. */
export interface BodyFlow {
  /** Stops reading from the client. Nothing is given until `resume` but, perhaps, `cut`. */
  pause(): void;
  resume(): void;
  /** Nothing is given any more, and what still comes is thrown away. */
  leave(): void;
}

/** One answer. `headers` is flat: name, value, name, value, and holds no `Content-Length`. */
export interface HttpReply {
  readonly status: number;
  readonly headers: readonly string[];
  /** Text and bytes are sent with their length; a stream is sent chunked, with back-pressure. */
  readonly body: string | Buffer | Readable | undefined;
  /** Of a stream, where it is known before: sent as `Content-Length`, and not chunked. */
  readonly streamBytes?: number;
  /** The tag among the headers, where a request may depend on it (RFC 9110 §13). */
  readonly etag?: string;
  /** Where its room is taken, if not of what clients have. */
  readonly pool?: MemoryPool;
  /** What a stream holds in memory at a time, in bytes; 0 where it counts that by itself. */
  readonly streamBytesMax?: number;
}

/** Whatever it throws becomes a problem answer (R5). */
export type Handler = (request: HttpRequest) => MaybePromise<HttpReply>;

/** What a route leads to. */
export interface Endpoint {
  readonly handler: Handler;
  /** The one media type of a GET's answer: another `Accept` is 406 (R6). */
  readonly produces?: string;
  /** The pattern of its path, such as `/posts/{id}`. */
  readonly route?: string;
}

const jsonHeaders: readonly string[] = ['Content-Type', 'application/json; charset=utf-8'];
const textHeaders: readonly string[] = ['Content-Type', 'text/plain; charset=utf-8'];
const noHeaders: readonly string[] = [];

/** JSON text or bytes that are ready to be sent. */
export function jsonTextReply(status: number, text: string | Buffer): HttpReply {
  return { status, headers: jsonHeaders, body: text };
}

/** Any JSON value. */
export function jsonReply(status: number, value: unknown): HttpReply {
  return jsonTextReply(status, JSON.stringify(value));
}

/** Plain text in UTF-8. */
export function textReply(status: number, text: string): HttpReply {
  return { status, headers: textHeaders, body: text };
}

/** An answer without content. */
export function emptyReply(status: number, headers: readonly string[] = noHeaders): HttpReply {
  return { status, headers, body: undefined };
}
