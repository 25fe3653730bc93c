/**
 * A cache of whole responses. Each belongs to a reading of the records, which tells whether
 * anything that it read has been written to since.
 */

import { BoundedMap } from '../bounded-map.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { HttpResponse } from './message.ts';

/** JSON to send. A short one is a string, which Node writes in one piece with the head. */
export type JsonBody = string | Buffer;

/** Longer texts are kept as bytes: encoding them for each response would cost more. */
const textLengthMax = 2_048;

export function toJsonBody(text: string): JsonBody {
  return text.length < textLengthMax ? text : Buffer.from(text);
}

export function toBytes(body: JsonBody): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

/** Approximate memory of an entry without key and body, in bytes. */
const entryBytes = 500;

/** The records of one response, which remember what was read. */
export interface CurrentOrNot {
  /** False, permanently, once anything that was read has been written to. */
  isCurrent(): boolean;
  /** Identifies the state that was read; undefined if the store cannot tell. */
  readonly version: string | undefined;
}

/** Caches a response whose body is not a stream, and returns it. */
export type Keep = (response: HttpResponse) => HttpResponse;

export interface ResponseCache<R extends CurrentOrNot> {
  /** Opens a reading of the present records, for one response. */
  readonly read: () => R;
  /** Returns the cached response for `key`, if nothing that it read has been written to since. */
  find(key: string | undefined): HttpResponse | undefined;
  /** Caches a response, and returns it as it is cached: with a long text as bytes. */
  store(key: string, records: R, response: HttpResponse): HttpResponse;
  /**
   * Returns the cached response for `key` (Latin-1 text), or the result of `make`, which must
   * depend on nothing but `records`. Without a key nothing is cached.
   */
  get(
    key: string | undefined,
    make: (records: R, keep: Keep) => MaybePromise<HttpResponse>,
  ): MaybePromise<HttpResponse>;
}

interface Entry {
  readonly response: HttpResponse;
  readonly reading: CurrentOrNot;
}

/** `bytesMax`: the limit for keys and responses together; 0 disables the cache. */
export function createResponseCache<R extends CurrentOrNot>({
  bytesMax,
  read,
}: Pick<ResponseCache<R>, 'read'> & { readonly bytesMax: number }): ResponseCache<R> {
  const entries = new BoundedMap<Entry>(bytesMax);
  const keep = (key: string, reading: CurrentOrNot, response: HttpResponse): void => {
    const bytes = entryBytes + key.length + bytesOf(response);
    // If a write came while the response was made, it is sent but not cached.
    if (bytes > bytesMax || !reading.isCurrent()) return;
    // A copy, because V8 keeps the whole target alive for a key that is a slice of it.
    entries.set(Buffer.from(key, 'latin1').toString('latin1'), { response, reading }, bytes);
  };

  const find = (key: string | undefined): HttpResponse | undefined => {
    const known = key === undefined ? undefined : entries.get(key);
    return known?.reading.isCurrent() === true ? known.response : undefined;
  };

  return {
    read,
    find,
    store(key, records, response) {
      const { body } = response;
      const kept = typeof body === 'string' ? { ...response, body: toJsonBody(body) } : response;
      keep(key, records, kept);
      return kept;
    },
    get(key, make) {
      const known = find(key);
      if (known !== undefined) return known;
      const reading = read();
      return make(reading, (response) => {
        if (key !== undefined) keep(key, reading, response);
        return response;
      });
    },
  };
}

/** A character of a string takes at most two bytes. */
function bytesOf({ body }: HttpResponse): number {
  if (typeof body === 'string') return 2 * body.length;
  return Buffer.isBuffer(body) ? body.length : Number.POSITIVE_INFINITY;
}
