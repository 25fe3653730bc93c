/**
 * The caches: whole responses, each with the tracked records that it was made from, so that a
 * change of one of them is noticed; and the JSON texts of records.
 *
 * 1. `respond(key, make)` returns the cached response if its records are current. A store to which
 *    other processes write is asked first (`readChanges`).
 * 2. Otherwise `make` returns a response, which is cached unless what it read has changed since.
 * 3. While the store has sent no read since a response was begun, requests with its key by the same
 *    reader share the response: its reads begin after these requests came, so that none of the
 *    requests gets a response that is older than itself.
 * 4. Readers share what is published. A response that depends on who asks is not cached, and an
 *    administrator, whose lists have more, gets nothing from the cache (R44).
 *
 *     request A   key not current → begin; reads sent so far: 7
 *     request B   reads sent: 7   → shares the response of A
 *                 the read of A is sent: 8
 *     request C   reads sent: 8   → begins its own
 */

import { Readable } from 'node:stream';
import { BoundedMap } from '../bounded-map.ts';
import type { Reader } from '../domain/readers.ts';
import type { HttpResponse } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Store } from '../store/store.ts';
import { TrackedRecords } from './tracked-records.ts';

/** Approximate memory in bytes: a cached response without key and body, and a slot it has noted. */
const entryBytes = 500;
const slotBytes = 8;

interface Entry {
  readonly response: HttpResponse;
  readonly records: TrackedRecords;
}

/** `isUncacheable`: an equal request may get another response although no record was written. */
export type MadeResponse = HttpResponse & { readonly isUncacheable?: boolean };

/** Makes a response of nothing but `records`. */
type Make = (records: TrackedRecords) => MaybePromise<MadeResponse>;

/** Starts to make the response. With `fault`, each of its reads fails with it. */
type Start = (fault?: Error) => MaybePromise<HttpResponse>;

interface RespondOptions {
  /** Who asks. */
  readonly reader: Reader | undefined;
  /**
   * True for a request that only reads: equal requests share its response while it is being made.
   * By default the request may be a mutation, unless a response to its key is cached.
   */
  readonly isRead?: boolean;
  /** Calls `work`, which makes the response, when its turn has come. Default: at once. */
  readonly runInTurn?: <T>(work: () => MaybePromise<T>) => MaybePromise<T>;
}

interface ResponseCacheOptions {
  readonly store: Store;
  /** Identifies this process. */
  readonly run: string;
  /** The limit for keys and responses together; 0 disables the cache. */
  readonly bytesMax: number;
}

/** What is asked for. */
interface Asked extends Pick<RespondOptions, 'reader'> {
  readonly key: string;
  /** The key and the account of the reader. */
  readonly sharedKey: string;
  readonly make: Make;
}

/** What requests share that ask for one key before its response has read anything. */
interface Shared {
  response?: MaybePromise<HttpResponse>;
  /** The reads that the store had sent when the response was begun; undefined before that. */
  readsSent?: number | undefined;
}

export type ResponseCache = ReturnType<typeof createResponseCache>;

export function createResponseCache({ store, run, bytesMax }: ResponseCacheOptions) {
  const { readChanges, readsSent } = store;
  const entries = new BoundedMap<Entry>(bytesMax);
  const shared = new Map<string, Shared>();
  const findCurrent = (key: string): Entry | undefined => {
    const entry = entries.get(key);
    return entry?.records.isCurrent() ? entry : undefined;
  };
  const read = (reader: Reader | undefined, fault?: Error): TrackedRecords =>
    new TrackedRecords(store, { reader, run, fault });
  const makeNow = async ({ key, sharedKey, reader, make }: Asked, fault?: Error) => {
    // Another request may have made the response while this one waited for its turn.
    const other = readChanges === undefined ? findCurrent(key) : undefined;
    if (other !== undefined) return other.response;
    const begun = shared.get(sharedKey);
    if (begun !== undefined) {
      begun.readsSent ??= readsSent?.();
      setImmediate(() => shared.delete(sharedKey));
    }
    const records = read(reader, fault);
    const response = await make(records);
    // If a write came while the response was made, the response is sent but not cached.
    if (response.isUncacheable === true || records.isPersonal || !records.isCurrent())
      return response;
    const size = entryBytes + slotBytes * records.slots.length + key.length + bytesOf(response);
    // A copy, because V8 keeps the whole target alive for a key that is a slice of it.
    entries.set(Buffer.from(key, 'latin1').toString('latin1'), { response, records }, size);
    return response;
  };
  /** For a store that has to be asked whether a response is current. */
  const respondAsked = async ({ key, sharedKey }: Asked, start: Start): Promise<HttpResponse> => {
    const entry = findCurrent(key);
    const fault = entry && (await readChanges?.().then(noFault, toFault));
    // `make` starts, and fails at its first read: REST and GraphQL respond in their own ways.
    if (fault !== undefined) return start(fault);
    if (entry?.records.isCurrent()) return entry.response;
    const other = shared.get(sharedKey);
    const sent = readsSent?.();
    // A read begins after its request came: a later request gets a response of its own.
    if (other?.response !== undefined && (other.readsSent ?? sent) === sent) {
      const response = await other.response;
      // A stream has one reader.
      return response.body instanceof Readable ? start() : response;
    }
    const own: Shared = {};
    shared.set(sharedKey, own);
    return (own.response = start());
  };

  return {
    /** Opens the present records of a reader. */
    read,
    /**
     * Returns the cached response for `key` (Latin-1 text), if nothing that it read has changed;
     * otherwise what `make` returns, and caches that, unless it is a stream. Requests that ask
     * together share both. If the store fails to tell what has changed, each read of `make` fails.
     */
    respond(
      key: string | undefined,
      make: Make,
      { reader, isRead = false, runInTurn = (work) => work() }: RespondOptions,
    ): MaybePromise<HttpResponse> {
      if (key === undefined || reader?.isAdmin === true) return runInTurn(() => make(read(reader)));
      const asked = { key, sharedKey: toSharedKey(key, reader), reader, make };
      const start: Start = (fault) => runInTurn(() => makeNow(asked, fault));
      if (readChanges === undefined) return findCurrent(key)?.response ?? start();
      return isRead || entries.get(key) !== undefined ? respondAsked(asked, start) : start();
    },
  };
}

function toSharedKey(key: string, reader: Reader | undefined): string {
  return reader?.id === undefined ? key : `${reader.id} ${key}`;
}

const noFault = (): undefined => undefined;
/** A store rejects with errors. */
const toFault = (error: Error): Error => error;

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

/** Approximate memory of the entry of a cached text without its characters, in bytes. */
const textEntryBytes = 100;

/**
 * Caches the JSON texts of records, each for as long as its record is the same object, until they
 * exceed `bytesMax`: then all are removed. With 0 nothing is cached: for a store that does not
 * return the same object for a record until it changes.
 */
export function createRecordTexts(bytesMax: number): ToText {
  let texts = new WeakMap<object, string>();
  let bytes = 0;
  if (bytesMax === 0) return (record, toJson) => toJson(record);
  return (record, toJson) => {
    const key = record as object; // Every record is an object.
    const cached = texts.get(key);
    if (cached !== undefined) return cached;
    const text = toJson(record);
    const size = textEntryBytes + 2 * text.length;
    if (size > bytesMax) return text;
    bytes += size;
    // The texts of removed records count until all texts are removed.
    if (bytes > bytesMax) {
      texts = new WeakMap();
      bytes = size;
    }
    texts.set(key, text);
    return text;
  };
}
