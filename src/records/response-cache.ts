/**
 * A cache of whole responses. Each belongs to a reading of the records, which tells whether
 * anything that it read has been written to since.
 */

import { BoundedMap } from '../bounded-map.ts';
import { toJsonBody } from '../http/json-body.ts';
import type { HttpResponse } from '../http/message.ts';
import type { Store } from '../store/store.ts';
import { Reading } from './reading.ts';

/** Approximate memory of an entry without key and body, in bytes. */
const entryBytes = 500;

export interface ResponseCache {
  /** Opens a reading of the present records, for one response. */
  readonly read: () => Reading;
  /**
   * Returns the cached response for `key` (Latin-1 text), if nothing that it read has been written
   * to since.
   */
  find(key: string | undefined): HttpResponse | undefined;
  /**
   * Caches a response that depends on nothing but `records`, and whose body is not a stream.
   * Returns it as it is cached: with a long text as bytes.
   */
  store(key: string, records: Reading, response: HttpResponse): HttpResponse;
}

interface Entry {
  readonly response: HttpResponse;
  readonly records: Reading;
}

export interface ResponseCacheOptions {
  readonly store: Store;
  /** Identifies this process. */
  readonly run: string;
  /** The limit for keys and responses together; 0 disables the cache. */
  readonly bytesMax: number;
}

export function createResponseCache(options: ResponseCacheOptions): ResponseCache {
  const { store, run, bytesMax } = options;
  const entries = new BoundedMap<Entry>(bytesMax);
  return {
    read: () => new Reading(store, run),
    find(key) {
      const entry = key === undefined ? undefined : entries.get(key);
      return entry?.records.isCurrent() === true ? entry.response : undefined;
    },
    store(key, records, made) {
      const body = typeof made.body === 'string' ? toJsonBody(made.body) : made.body;
      const response = { ...made, body };
      const bytes = entryBytes + key.length + bytesOf(response);
      // If a write came while the response was made, it is sent but not cached.
      if (bytes <= bytesMax && records.isCurrent()) {
        // A copy, because V8 keeps the whole target alive for a key that is a slice of it.
        const ownKey = Buffer.from(key, 'latin1').toString('latin1');
        entries.set(ownKey, { response, records }, bytes);
      }
      return response;
    },
  };
}

/** A character of a string takes at most two bytes. */
function bytesOf({ body }: HttpResponse): number {
  if (typeof body === 'string') return 2 * body.length;
  return Buffer.isBuffer(body) ? body.length : Number.POSITIVE_INFINITY;
}
