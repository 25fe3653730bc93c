/**
 * Responds with a JSON array. A short list is one buffer. A long one is streamed in pieces, so that
 * it takes neither the memory of all records nor long time slices. Records are read page by page,
 * and for a long list no faster than its client reads.
 */

import { Readable } from 'node:stream';
import { type AppError, overloaded } from '../errors.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool, Reservation } from '../memory-pool.ts';
import { createScheduler, type Scheduler } from '../scheduler.ts';
import {
  type JsonBody,
  type ResponseCache,
  type CurrentOrNot,
  toJsonBody,
  toBytes,
} from './response-cache.ts';
import { taggedResponse } from './etag.ts';
import { type HttpResponse, jsonTextResponse } from './message.ts';
import type { RecordText } from './record-texts.ts';

/** A page of records, and a function that reads the next page if there is one. */
export interface ListPage<T> {
  readonly records: readonly T[];
  readonly next: (() => MaybePromise<ListPage<T>>) | undefined;
}

export interface JsonList<R, T> {
  /** The cache key of the response; undefined: it is not cached. */
  readonly key: string | undefined;
  readonly read: (records: R) => MaybePromise<ListPage<T>>;
  /** Returns the JSON text of one record. */
  readonly toJson: (record: T) => string;
}

/**
 * Throws, or rejects with, `overloaded` if too many long lists are being sent, or the pool has no
 * room for one.
 */
export type ToListResponse<R> = <T>(list: JsonList<R, T>) => MaybePromise<HttpResponse>;

/** Up to this many characters a list is one buffer. */
const bufferedLengthMax = 4 * 1024 * 1024;
/** Memory of a stream in bytes: the records read before it started, and one more page. */
const streamBytesMax = bufferedLengthMax + 2 * 1024 * 1024;
/** Minimum length of a piece in characters: smaller pieces cost more than they save. */
const pieceLength = 65_536;
/** Long lists that are sent at the same time: each reads the store as fast as its client reads. */
const streamsMax = 16;

/**
 * `responses` caches short lists; `pool` accounts for lists of several pages; `toText` may cache
 * the texts of records, so that a list is made faster after a change.
 */
export function createToListResponse<R extends CurrentOrNot>(
  responses: ResponseCache<R>,
  pool: MemoryPool,
  toText: RecordText = (record, toJson) => toJson(record),
): ToListResponse<R> {
  const scheduler = createScheduler();
  let streams = 0;

  const stream = (pieces: Pieces): HttpResponse => {
    if (streams >= streamsMax) throw tooManyLists();
    streams += 1;
    const body = Readable.from(pieces).once('close', () => {
      streams -= 1;
    });
    return { ...jsonTextResponse(200, ''), body, streamBytesMax };
  };

  return <T>({ key, read, toJson }: JsonList<R, T>) =>
    responses.get(key, (records, keep) =>
      andThen(read(records), (page) => {
        // Accounts for the memory that is held while other requests run between two pages.
        const room = pool.open();
        const toItem = (record: T): string => toText(record, toJson);
        const body = gather({ texts: new ListTexts(), room, scheduler, toJson: toItem }, page);
        return andThen(isPromise(body) ? body.finally(() => room.release()) : body, (made) =>
          typeof made === 'string' || Buffer.isBuffer(made)
            ? keep(taggedResponse(made, records.version))
            : stream(made),
        );
      }),
    );
}

type Pieces = AsyncGenerator<Buffer, void, undefined>;

function tooManyLists(): AppError {
  return overloaded('Too many long lists are being read.', 5);
}

interface Gathering<T> {
  readonly texts: ListTexts;
  readonly room: Reservation;
  readonly scheduler: Scheduler;
  readonly toJson: (record: T) => string;
}

/** Returns the whole array, or a stream of it if it is too long for one buffer. */
function gather<T>(gathering: Gathering<T>, page: ListPage<T>): MaybePromise<JsonBody | Pieces> {
  const { texts, toJson, scheduler, room } = gathering;
  for (const [at, record] of page.records.entries()) {
    texts.add(toJson(record));
    if (texts.length > bufferedLengthMax) {
      return toPieces(gathering, { ...page, records: page.records.slice(at + 1) });
    }
  }
  const { next } = page;
  if (next === undefined) return texts.end();
  texts.toBytes();
  // The whole response is made while its pieces still exist.
  if (!room.grow(2 * texts.bytes - room.bytes)) throw tooManyLists();
  return scheduler
    .yield()
    .then(next)
    .then((following) => gather(gathering, following));
}

async function* toPieces<T>({ texts, toJson, scheduler }: Gathering<T>, rest: ListPage<T>): Pieces {
  for (let page = rest; ; page = await page.next()) {
    for (const record of page.records) {
      texts.add(toJson(record));
      for (const piece of texts.take()) {
        yield piece;
        // Other requests run between two pieces, also if the client reads fast.
        await scheduler.yield();
      }
    }
    if (page.next === undefined) break;
  }
  yield toBytes(texts.end());
}

/** The texts of an array. They are encoded piece by piece, to keep the event loop free. */
class ListTexts {
  /** Characters added so far. */
  length = 0;
  /** Bytes of the encoded pieces. */
  bytes = 0;
  #pieces: Buffer[] = [];
  #texts: string[] = [];
  #textsLength = 0;
  #start = '[';

  add(text: string): void {
    this.#texts.push(text);
    this.length += text.length;
    this.#textsLength += text.length;
    if (this.#textsLength >= pieceLength) this.toBytes();
  }

  toBytes(): void {
    if (this.#texts.length === 0) return;
    const piece = Buffer.from(this.#start + this.#texts.join(','));
    this.#pieces.push(piece);
    this.bytes += piece.length;
    [this.#texts, this.#textsLength, this.#start] = [[], 0, ','];
  }

  /** Removes and returns the encoded pieces. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    if (pieces.length > 0) this.#pieces = [];
    return pieces;
  }

  /** Returns the rest, with the end of the array. */
  end(): JsonBody {
    const start = this.#texts.length === 0 && this.#start === ',' ? '' : this.#start;
    const last = toJsonBody(`${start}${this.#texts.join(',')}]`);
    return this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, toBytes(last)]);
  }
}
