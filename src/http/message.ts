/**
 * HTTP as handlers see it: a request, and a response as a value. Handlers never touch a socket;
 * `http/server/` converts from and to bytes.
 */

import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { AppError } from '../errors.ts';
import type { LogFacts } from '../log.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { ConnectionMemory, Reservation } from '../memory-pool.ts';
import type { Params } from '../router.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { RequestBody } from './server/body.ts';
import type { Incoming } from './server/incoming.ts';

const noBody = Buffer.alloc(0);

/** Decoding a body up to this size takes less time than reading its request. */
const smallBodyBytes = 512;

interface RequestDeps {
  readonly body: RequestBody | undefined;
  readonly memory: ConnectionMemory;
  readonly run: RunInTurn;
}

/** One request. Handlers read it; `http/server/` alone uses the message behind it. */
export class HttpRequest {
  /** Also sent as `X-Request-Id` and written to log lines. */
  readonly id: string;
  readonly method: string;
  /** The path as sent: percent-encoded, without the query. */
  path = '';
  /** What follows the first `?`, percent-encoded; empty if there is none. */
  query = '';
  /** The validated value of `Host` (RFC 9112 §3.2). */
  host = '';
  /** The path parameters by name, percent-decoded. */
  params: Params = {};
  /** Undefined if no route matched. */
  endpoint: Endpoint | undefined;
  /** The additional members of the line in the log. */
  logFacts: LogFacts | undefined;
  /** The name of the account that sent it, once its token was checked. */
  account: string | undefined;
  /** What it changes, for the log, if neither its path nor `Location` says it. */
  changed: readonly string[] | undefined;
  /** SHA-256 of a body that was read whole, if the request has a key (R40). */
  bodyDigest = '';
  readonly incoming: Incoming;
  readonly outgoing: ServerResponse;
  /** Undefined if the message has none. */
  readonly body: RequestBody | undefined;
  /** Milliseconds of `performance.now()`. */
  readonly startedAt = performance.now();
  /** The memory that the connection of the request holds. */
  readonly memory: ConnectionMemory;
  readonly #run: RunInTurn;
  #reservation: Reservation | undefined;

  constructor(
    id: string,
    { incoming, outgoing }: Pick<HttpRequest, 'incoming' | 'outgoing'>,
    { body, memory, run }: RequestDeps,
  ) {
    this.id = id;
    this.method = incoming.method ?? '';
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.body = body;
    this.memory = memory;
    this.#run = run;
  }

  /** For memory that the handler needs beside the body. Released with the response. */
  get reservation(): Reservation {
    return (this.#reservation ??= this.memory.open());
  }

  /** The address of the connection, which may be a proxy's (R34); empty if the socket is closed. */
  get remoteAddress(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  /** Returns a header by lower-case name. Repeated ones are joined or refused (RFC 9110). */
  header(name: string): string | undefined {
    // Only Set-Cookie, which is for responses, would be an array.
    return this.incoming.headers[name] as string | undefined;
  }

  /**
   * Reads the whole body; returns a promise only if it has not arrived yet. Fails with
   * `content_too_large` beyond `bytesMax`, and with ClientGone if the body ends early; nothing is
   * sent then.
   */
  readBody(bytesMax: number): MaybePromise<Buffer> {
    const body = this.body?.read(bytesMax) ?? noBody;
    if (this.incoming.headers['idempotency-key'] === undefined) return body;
    return andThen(body, (bytes) => {
      this.bodyDigest = hash('sha256', bytes);
      return bytes;
    });
  }

  /**
   * Reads the whole body as `readBody` does, and returns what `decode` makes of it. A body over
   * `smallBodyBytes` is decoded in a turn of the scheduler: until then it waits as bytes.
   */
  decodeBody<T>(bytesMax: number, decode: (bytes: Buffer) => T): MaybePromise<T> {
    return andThen(this.readBody(bytesMax), (bytes) =>
      bytes.length <= smallBodyBytes
        ? decode(bytes)
        : this.#run(() => {
            this.reserveValues(bytes);
            return decode(bytes);
          }),
    );
  }

  /**
   * Reserves the memory of the values of a body that was read. Call it in the turn that parses the
   * body. Throws `overloaded`.
   */
  reserveValues(body: Buffer): void {
    this.body?.reserveValues(body.length);
  }

  /**
   * Returns what arrived of the body since the last call, and waits if nothing did; empty at the
   * end. The client is paused until it is called again. For endpoints that must not hold the body
   * in memory. Fails with ClientGone if the body ends early, or with `request_timeout`.
   */
  readChunk(): MaybePromise<Buffer> {
    return this.body?.readChunk() ?? noBody;
  }

  /** Returns its memory to the pool. */
  release(): void {
    this.#reservation?.release();
    this.body?.reservation.release();
  }
}

/** One response. `headers` is flat: name, value, name, value; without `Content-Length`. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: readonly string[];
  /** Strings and buffers are sent with their length; streams are chunked, with back-pressure. */
  readonly body: string | Buffer | Readable | undefined;
  /** The length of a stream, if known: it is sent as `Content-Length` instead of chunked. */
  readonly streamBytes?: number;
  /** The entity tag among the headers, if requests may be conditional (RFC 9110 §13). */
  readonly etag?: string;
  /** The error that this response describes, for the log. */
  readonly error?: AppError;
  /** Memory that a stream holds, in bytes; or the reservation that it accounts for itself. */
  readonly streamBytesMax?: number;
  readonly reservation?: Reservation;
}

/** Anything it throws becomes a problem response (R5). */
export type Handler = (request: HttpRequest) => MaybePromise<HttpResponse>;

/** The target of a route. */
export interface Endpoint {
  readonly handler: Handler;
  /** The only media type of a GET's response; 406 if `Accept` excludes it (R6). */
  readonly produces?: string;
  /** The media types of a PATCH, which OPTIONS says (RFC 5789 §3.1). */
  readonly acceptPatch?: string;
  /** True for a POST whose handler obeys `If-Match` and `If-None-Match`. */
  readonly takesConditions?: true;
  /** The path pattern, such as `/posts/{id}`. */
  readonly route?: string;
}

const jsonHeaders: readonly string[] = ['Content-Type', 'application/json; charset=utf-8'];
const uncachedHeaders: readonly string[] = [...jsonHeaders, 'Cache-Control', 'no-store'];
const textHeaders: readonly string[] = ['Content-Type', 'text/plain; charset=utf-8'];
const noHeaders: readonly string[] = [];

/** A response with serialised JSON. */
export function jsonTextResponse(status: number, text: string | Buffer): HttpResponse {
  return { status, headers: jsonHeaders, body: text };
}

/** A response with a JSON value that no cache may keep. */
export function uncachedResponse(status: number, value: unknown): HttpResponse {
  return { status, headers: uncachedHeaders, body: JSON.stringify(value) };
}

/** A response with plain text in UTF-8. */
export function textResponse(status: number, text: string): HttpResponse {
  return { status, headers: textHeaders, body: text };
}

/** A response without content. */
export function emptyResponse(status: number, headers = noHeaders): HttpResponse {
  return { status, headers, body: undefined };
}

/**
 * The response for one client alone, where it depends on who asks (R6b): `Vary` would not keep a
 * cache with a lifetime of its own from giving it to others. What has no rule for caches gets
 * `no-store` when it is sent.
 */
export function toPersonal(response: HttpResponse): HttpResponse {
  const headers = [...response.headers];
  const at = headers.indexOf('Cache-Control') + 1;
  if (at > 0) headers[at] = `private, ${headers[at]}`;
  addVary(headers, 'Authorization');
  return { ...response, headers };
}

/** Adds a request header that the response depends on: some caches read only the first `Vary`. */
export function addVary(headers: string[], name: string): void {
  const at = headers.indexOf('Vary') + 1;
  if (at === 0) headers.push('Vary', name);
  else headers[at] = `${name}, ${headers[at]}`;
}
