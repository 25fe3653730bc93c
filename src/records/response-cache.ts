/**
 * The caches: whole responses, each with the tracked records that it was made from, so that a
 * change of one of them is noticed; and the JSON texts of records.
 *
 * 1. `respond(key, make)` returns the cached response if its records are current.
 * 2. Otherwise `make` returns a response, which is cached unless what it read has changed since.
 * 3. Readers share what is published. A response that depends on who asks is not cached, and an
 *    administrator, whose lists have more, gets nothing from the cache (R44), nor does who may
 *    approve comments (R48).
 *
 * A store to which other processes write is asked for its state first: a response is current while
 * that is the same, and what is made where it is not known is not cached. Equal requests that were
 * told the same state wait for the first one's response.
 */

import { BoundedMap } from '../bounded-map.ts';
import { isModerator, type Reader } from '../domain/readers.ts';
import type { HttpResponse } from '../http/message.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { Store } from '../store/store.ts';
import { TrackedRecords } from './tracked-records.ts';

/** Approximate memory in bytes: a cached response without key and body, and a slot it has noted. */
const entryBytes = 500;
const slotBytes = 8;

/** What is asked for, and the state of the store when it was asked. */
interface Question {
  readonly key: string;
  readonly state: string;
}

interface Entry {
  readonly response: HttpResponse;
  readonly records: TrackedRecords;
  /** That of the store before it was read. */
  readonly state: string;
}

/** `isUncacheable`: an equal request may get another response although no record was written. */
export type MadeResponse = HttpResponse & { readonly isUncacheable?: boolean };

/** Makes a response of nothing but `records`. */
type Make = (records: TrackedRecords) => MaybePromise<MadeResponse>;

interface RespondOptions {
  /** Who asks. */
  readonly reader: Reader | undefined;
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

export type ResponseCache = ReturnType<typeof createResponseCache>;

export function createResponseCache({ store, run, bytesMax }: ResponseCacheOptions) {
  const entries = new BoundedMap<Entry>(bytesMax);
  const askState = bytesMax === 0 ? () => undefined : (store.askState ?? (() => ''));
  const findCurrent = ({ key, state }: Question): HttpResponse | undefined => {
    const entry = entries.get(key);
    return entry?.state === state && entry.records.isCurrent() ? entry.response : undefined;
  };
  const read = (reader: Reader | undefined) => new TrackedRecords(store, { reader, run });
  const makeNow = async (question: Question, reader: Reader | undefined, make: Make) => {
    const { key, state } = question;
    // Another request may have made the response while this one waited for its turn.
    const other = findCurrent(question);
    if (other !== undefined) return other;
    const records = read(reader);
    const response = await make(records);
    // If a write came while the response was made, the response is sent but not cached.
    if (response.isUncacheable === true || records.isPersonal || !records.isCurrent())
      return response;
    const size = entryBytes + slotBytes * records.slots.length + key.length + bytesOf(response);
    // A copy, because V8 keeps the whole target alive for a key that is a slice of it.
    entries.set(Buffer.from(key, 'latin1').toString('latin1'), { response, records, state }, size);
    return response;
  };
  /** What is being made, by state and key. */
  const making = new Map<string, Promise<unknown>>();
  const makeOnce = (question: Question, work: () => MaybePromise<HttpResponse>) => {
    if (store.askState === undefined) return work();
    const id = `${question.state} ${question.key}`;
    // Once: what is not cached after that is each request's own.
    const begun = making.get(id);
    if (begun !== undefined) return begun.then(() => findCurrent(question) ?? work());
    const made = work();
    const end = (): void => void making.delete(id);
    if (isPromise(made)) making.set(id, made.then(end, end));
    return made;
  };

  return {
    /** Opens the present records of a reader. */
    read,
    /**
     * Returns the cached response for `key` (Latin-1 text), if nothing that it read has changed;
     * otherwise what `make` returns, and caches that, unless it is a stream.
     */
    respond(
      key: string | undefined,
      make: Make,
      { reader, runInTurn = (work) => work() }: RespondOptions,
    ): MaybePromise<HttpResponse> {
      const isOwn = key === undefined || reader?.isAdmin === true || isModerator(reader);
      if (isOwn) return runInTurn(() => make(read(reader)));
      return andThen(askState(), (state) => {
        if (state === undefined) return runInTurn(() => make(read(reader)));
        const question = { key, state };
        const work = () => runInTurn(() => makeNow(question, reader, make));
        return findCurrent(question) ?? makeOnce(question, work);
      });
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
