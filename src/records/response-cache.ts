/**
 * The caches: whole responses, each with the reading of the records that it was made from, which
 * tells whether anything that it read has been written to since; and the JSON texts of records.
 */

import { Readable } from 'node:stream';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { BoundedMap } from '../bounded-map.ts';
import type { HttpResponse } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Area, Records, Store, Versions } from '../store/store.ts';

/**
 * Records as one response reads them. Using the property of an area notes its version before
 * anything is read. A response can therefore not be made from an area that is not noted.
 */
export class Reading implements Records {
  readonly #store: Store;
  readonly #run: string;
  readonly #fault: Error | undefined;
  readonly #seen: Partial<Versions> = {};

  /** `run` identifies this process. `fault`: with what everything that is read fails. */
  constructor(store: Store, run: string, fault?: Error) {
    this.#store = store;
    this.#run = run;
    this.#fault = fault;
  }

  get posts() {
    return this.#open('posts');
  }
  get comments() {
    this.#open('posts');
    return this.#open('comments');
  }
  get authors() {
    return this.#open('authors');
  }
  get todos() {
    return this.#open('todos');
  }
  get articles() {
    return this.#open('articles');
  }

  /** True if nothing that was read had been written to when the store had these versions. */
  isCurrent(now: Readonly<Versions> = this.#store.versions()): boolean {
    for (const area in this.#seen) {
      if (this.#seen[area as Area] !== now[area as Area]) return false; // an area: see #open
    }
    return true;
  }

  /** Identifies the state that was read; undefined if other processes may have changed it. */
  get version(): string | undefined {
    if (this.#store.readVersions !== undefined) return undefined;
    return `${this.#run}-${Object.values(this.#seen).join('-')}`;
  }

  #open<A extends Area>(area: A): Store[A] {
    if (this.#fault !== undefined) throw this.#fault;
    if (!(area in this.#seen)) this.#seen[area] = this.#store.versions()[area];
    return this.#store[area];
  }
}

/** Approximate memory of a cached response without key and body, in bytes. */
const entryBytes = 500;

interface Entry {
  readonly response: HttpResponse;
  readonly records: Reading;
}

/** Makes a response of nothing but `records`. */
type Make = (records: Reading) => MaybePromise<HttpResponse>;

interface ResponseCacheOptions {
  readonly store: Store;
  /** Identifies this process. */
  readonly run: string;
  /** The limit for keys and responses together; 0 disables the cache. */
  readonly bytesMax: number;
}

export type ResponseCache = ReturnType<typeof createResponseCache>;

export function createResponseCache({ store, run, bytesMax }: ResponseCacheOptions) {
  const entries = new BoundedMap<Entry>(bytesMax);
  /** What is made anew at the end of this turn of the event loop, for all who ask in it. */
  const asked = new Map<string, Promise<HttpResponse>>();
  /** Opens a reading of the present records, for one response. */
  const read = (): Reading => new Reading(store, run);

  /** For a store that has to be asked whether a response is current. */
  const respondShared = async (key: string, entry: Entry | undefined, make: Make) => {
    try {
      if (entry?.records.isCurrent(await store.readVersions?.()) === true) return entry.response;
    } catch (error) {
      return make(new Reading(store, run, error as Error)); // a store rejects with errors
    }
    const shared = asked.get(key);
    if (shared === undefined) {
      const made = endOfTurn().then(() => {
        asked.delete(key);
        return make(read());
      });
      asked.set(key, made);
      return made;
    }
    const response = await shared;
    // A stream has one reader.
    return response.body instanceof Readable ? make(read()) : response;
  };

  return {
    read,
    /**
     * Returns the cached response for `key` (Latin-1 text), if nothing that it read has been
     * written to since; otherwise what `make` returns. If the store has to be asked, requests of
     * the same turn of the event loop share that; if it does not answer, what `make` reads fails.
     * With `isRead` they share the first response for a key too; without, it may be to a mutation.
     */
    respond(key: string | undefined, make: Make, isRead = false): MaybePromise<HttpResponse> {
      const entry = key === undefined ? undefined : entries.get(key);
      if (key === undefined || (entry === undefined && !isRead)) return make(read());
      const current = entry?.records.isCurrent() === true ? entry : undefined;
      if (store.readVersions !== undefined) return respondShared(key, current, make);
      return current?.response ?? make(read());
    },
    /**
     * Caches a response that depends on nothing but `records`, unless its body is a stream. Returns
     * it as it is cached: with a long text as bytes.
     */
    store(key: string, records: Reading, made: HttpResponse): HttpResponse {
      const body = typeof made.body === 'string' ? toJsonBody(made.body) : made.body;
      const response = { ...made, body };
      // If a write came while the response was made, it is sent but not cached.
      if (!records.isCurrent()) return response;
      // A copy, because V8 keeps the whole target alive for a key that is a slice of it.
      const ownKey = Buffer.from(key, 'latin1').toString('latin1');
      entries.set(ownKey, { response, records }, entryBytes + key.length + bytesOf(response));
      return response;
    },
  };
}

/** A character of a string takes at most two bytes. */
function bytesOf({ body }: HttpResponse): number {
  if (typeof body === 'string') return 2 * body.length;
  return Buffer.isBuffer(body) ? body.length : Number.POSITIVE_INFINITY;
}

/** Longer texts become bytes once: encoding them for each response would cost more. */
const textLengthMax = 2_048;

/** A short text stays a string, which Node writes in one piece with the head. */
export function toJsonBody(text: string): string | Buffer {
  return text.length < textLengthMax ? text : Buffer.from(text);
}

/** Returns the text of a record in a list. `toJson` must be the same for all records of a type. */
export type ToText = <T>(record: T, toJson: (record: T) => string) => string;

/** Approximate memory of a cached text in addition to its characters, in bytes. */
const placeBytes = 100;

/**
 * Caches the JSON texts of records, each for as long as its record is the same object, until they
 * exceed `bytesMax`: then all are removed. With 0 nothing is cached: for a store that does not
 * return the same object for a record until it changes.
 */
export function createRecordTexts(bytesMax: number): ToText {
  let texts = new WeakMap<object, string>();
  let bytes = 0;
  if (bytesMax === 0) return (record, toJson) => toJson(record);
  return (given, toJson) => {
    const record = given as object; // Every record is an object.
    const known = texts.get(record);
    if (known !== undefined) return known;
    const text = toJson(given);
    const size = placeBytes + 2 * text.length;
    if (size > bytesMax) return text;
    bytes += size;
    // Until then, texts of removed records are still counted.
    if (bytes > bytesMax) {
      texts = new WeakMap();
      bytes = size;
    }
    texts.set(record, text);
    return text;
  };
}
