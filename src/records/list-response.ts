/**
 * Responds with a JSON array. A short list is one buffer. A long one is streamed in pieces, so that
 * it takes neither the memory of all records nor long time slices: it is read page by page, and no
 * faster than its client reads.
 */

import { Readable } from 'node:stream';
import { overloaded } from '../errors.ts';
import { taggedResponse, withoutContent } from '../http/etag.ts';
import { type HttpRequest, type HttpResponse, jsonTextResponse } from '../http/message.ts';
import type { MemoryPool } from '../memory-pool.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { Page } from '../store/store.ts';
import { toJsonBody } from './response-cache.ts';

export interface JsonList<T> {
  /** Asks for the list. */
  readonly request?: Pick<HttpRequest, 'method' | 'header'>;
  readonly first: Page<T>;
  /** Returns the JSON text of one record. */
  readonly toJson: (record: T) => string;
  /** Identifies the state of the records, as `TrackedRecords` has it. */
  readonly version: string | undefined;
}

export type ToListResponse = ReturnType<typeof createToListResponse>;

/** Up to this many characters a list is one buffer. */
const bufferedLengthMax = 4 * 1024 * 1024;
/** Minimum length of a piece in characters: smaller pieces cost more than they save. */
const pieceLength = 65_536;

interface ListDeps {
  readonly pool: MemoryPool;
  readonly run: RunInTurn;
}

/** `pageBytes`: what a page of records takes that is read for this list alone. */
export function createToListResponse({ pool, run }: ListDeps, pageBytes: number) {
  /** Rejects with `overloaded` if the pool has no memory for the list. */
  return async <T>(list: JsonList<T>): Promise<HttpResponse> =>
    toBodiless(list) ?? (await toBuffered(list)) ?? toStream(list);

  /** A list of several pages is not read to the end for a response without content. */
  function toBodiless<T>({ request, first, version }: JsonList<T>): HttpResponse | undefined {
    return request && first.next && withoutContent(request, version);
  }

  /** Undefined for a list that is too long. */
  async function toBuffered<T>(list: JsonList<T>): Promise<HttpResponse | undefined> {
    const join = createJoin(list.toJson);
    const pieces: Buffer[] = [];
    let [length, bytes] = [0, 0];
    // Accounts for the memory that is held while other requests run between two pages.
    const reservation = pool.open();
    try {
      for (let page = list.first; ; page = await run(page.next)) {
        const records = page.records.values();
        const text = await run(() => join(records, bufferedLengthMax + 1 - length));
        length += text.length;
        if (length > bufferedLengthMax) return undefined;
        if (page.next === undefined && pieces.length === 0) {
          return taggedResponse(toJsonBody(`[${text}]`), list.version);
        }
        bytes += pieces[pieces.push(Buffer.from(text)) - 1]?.length ?? 0;
        if (page.next === undefined) {
          return taggedResponse(Buffer.concat([open, ...pieces, close]), list.version);
        }
        // The whole response is made while its pieces still exist.
        if (!reservation.grow(2 * bytes - reservation.bytes)) throw tooManyLists();
      }
    } finally {
      reservation.release();
    }
  }

  /** The client may read slowly, so the stream counts what it holds: a page and a piece. */
  function toStream<T>(list: JsonList<T>): HttpResponse {
    const reservation = pool.open();
    if (!reservation.grow(pageBytes + pieceLength)) throw tooManyLists();
    const count = (piece: Buffer): void => reservation.set(pageBytes + piece.length);
    const pieces = toPieces([list.first], { toJson: list.toJson, run, count });
    const body = Readable.from(pieces, { highWaterMark: 1 });
    body.once('close', () => reservation.release());
    return { ...jsonTextResponse(200, ''), body, reservation };
  }
}

const open = Buffer.from('[');
const close = Buffer.from(']');

interface PieceDeps<T> extends Pick<JsonList<T>, 'toJson'>, Pick<ListDeps, 'run'> {
  /** Called with each piece before it is sent. */
  readonly count: (piece: Buffer) => void;
}

async function* toPieces<T>(
  pages: Page<T>[],
  { toJson, run, count }: PieceDeps<T>,
): AsyncGenerator<Buffer> {
  const join = createJoin(toJson);
  let start = '[';
  // Taken out: a page is not kept after it was sent.
  for (let page = pages.pop(); page !== undefined; page = page.next && (await run(page.next))) {
    const records = page.records.values();
    for (let text; (text = await run(() => join(records, pieceLength))) !== ''; start = '') {
      const piece = Buffer.from(start + text);
      count(piece);
      yield piece;
    }
  }
  yield Buffer.from(`${start}]`);
}

/**
 * Returns a function that joins the texts of the next records, with the commas between them, up to
 * the record that makes them as long as `length`. It returns '' if there is none.
 */
function createJoin<T>(toJson: (record: T) => string) {
  let comma = '';
  return (records: Iterator<T>, length: number): string => {
    let text = '';
    for (let next = records.next(); next.done !== true; next = records.next()) {
      text += comma + toJson(next.value);
      comma = ',';
      if (text.length >= length) break;
    }
    return text;
  };
}

function tooManyLists(): Error {
  return overloaded('Too many long lists are being read.', 5);
}
