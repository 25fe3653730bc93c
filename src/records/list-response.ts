/**
 * Responds with a JSON array. A short list is one buffer. A long one is streamed in pieces, so that
 * it takes neither the memory of all records nor long time slices: it is read page by page, and no
 * faster than its client reads.
 */

import { Readable } from 'node:stream';
import { overloaded } from '../errors.ts';
import { taggedResponse } from '../http/etag.ts';
import { type JsonBody, toBytes, toJsonBody } from '../http/json-body.ts';
import { type HttpResponse, jsonTextResponse } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool } from '../memory-pool.ts';
import { createScheduler } from '../scheduler.ts';
import type { Page } from '../store/list.ts';

export interface JsonList<T> {
  /** Reads the first page. Called again for a list that turns out to be long. */
  readonly read: () => MaybePromise<Page<T>>;
  /** Returns the JSON text of one record. */
  readonly toJson: (record: T) => string;
  /** As in a reading. */
  readonly version: string | undefined;
}

/** Rejects with `overloaded` if the pool has no room for the list. */
export type ToListResponse = <T>(list: JsonList<T>) => Promise<HttpResponse>;

/** Up to this many characters a list is one buffer. */
const bufferedLengthMax = 4 * 1024 * 1024;
/** Minimum length of a piece in characters: smaller pieces cost more than they save. */
const pieceLength = 65_536;

/** `pageBytes`: what a page of records takes that is read for this list alone. */
export function createToListResponse(pool: MemoryPool, pageBytes: number): ToListResponse {
  const scheduler = createScheduler();

  /** The client may read slowly, so the stream counts what it holds: a page and a piece. */
  const toStream = <T>(list: JsonList<T>): HttpResponse => {
    const room = pool.open();
    if (!room.grow(pageBytes + pieceLength)) throw tooManyLists();
    const pieces = async function* (): AsyncGenerator<Buffer, void, undefined> {
      for await (const piece of toPieces(list)) {
        room.set(pageBytes + piece.length);
        yield piece;
        // Other requests run between two pieces, also if the client reads fast.
        await scheduler.yield();
      }
    };
    const body = Readable.from(pieces(), { highWaterMark: 1 }).once('close', () => room.release());
    return { ...jsonTextResponse(200, ''), body };
  };

  const toResponse = async <T>(list: JsonList<T>, first: Page<T>): Promise<HttpResponse> => {
    const texts = new ListTexts();
    // Accounts for the memory that is held while other requests run between two pages.
    const room = pool.open();
    try {
      for (let page = first; ; page = await page.next()) {
        for (const record of page.records) {
          texts.add(list.toJson(record));
          if (texts.length > bufferedLengthMax) return toStream(list);
        }
        if (page.next === undefined) return taggedResponse(texts.end(), list.version);
        texts.encode();
        // The whole response is made while its pieces still exist.
        if (!room.grow(2 * texts.bytes - room.bytes)) throw tooManyLists();
        await scheduler.yield();
      }
    } finally {
      room.release();
    }
  };
  /**
   * By the records of a page that is the whole list. A store without versions gives equal reads of
   * the same moment one array, which nobody changes.
   */
  const shared = new WeakMap<readonly unknown[], Promise<HttpResponse>>();

  return async (list) => {
    const page = await list.read();
    const { records, next } = page;
    if (list.version !== undefined || next !== undefined) return toResponse(list, page);
    const response = shared.get(records) ?? toResponse(list, page);
    shared.set(records, response);
    return response;
  };
}

function tooManyLists(): Error {
  return overloaded('Too many long lists are being read.', 5);
}

async function* toPieces<T>({ read, toJson }: JsonList<T>): AsyncGenerator<Buffer> {
  const texts = new ListTexts();
  for (let page = await read(); ; page = await page.next()) {
    for (const record of page.records) {
      texts.add(toJson(record));
      yield* texts.take();
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
    if (this.#textsLength >= pieceLength) this.encode();
  }

  encode(): void {
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
