/**
 * A JSON array as an answer: one buffer as long as it is small; piece by piece where it is large,
 * so that no list takes the memory of all its records, or the time of everybody else. Its records
 * are read page by page, once, and a long list no faster than its client takes it.
 */

import { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool, Reservation } from '../memory-pool.ts';
import { createScheduler, type Scheduler } from '../scheduler.ts';
import {
  type Answer,
  type AnswerCache,
  type CurrentOrNot,
  toAnswer,
  toBytes,
} from './answer-cache.ts';
import { createEtag, taggedReply } from './etag.ts';
import { type HttpReply, jsonTextReply } from './message.ts';
import type { RecordText } from './record-texts.ts';

/** Some records of a list, and how the next ones are read, where there are more. */
export interface ListPage<T> {
  readonly records: readonly T[];
  readonly next: (() => MaybePromise<ListPage<T>>) | undefined;
}

export interface JsonList<R, T> {
  /** The answer's name in the cache; undefined: it is not kept. */
  readonly key: string | undefined;
  readonly read: (records: R) => MaybePromise<ListPage<T>>;
  /** The JSON text of one record. */
  readonly toJson: (record: T) => string;
}

/**
 * Throws, or rejects with, `overloaded` where too many long lists are under way, or the pool has no
 * room for what is gathered of one.
 */
export type ReplyWithList<R> = <T>(list: JsonList<R, T>) => MaybePromise<HttpReply>;

/** Characters up to which a list is one buffer. */
const bufferedLengthMax = 4 * 1024 * 1024;
/** The records that were read before the list turned out to be long, and a page of others. */
const streamBytesMax = bufferedLengthMax + 2 * 1024 * 1024;
/** Characters of one piece, at least: smaller ones cost more than they are worth. */
const pieceLength = 65_536;
/** Long lists under way: each reads the store as fast as its client reads. */
const streamsMax = 16;

/**
 * `answers` keeps lists that are small; `pool` counts what is gathered over several pages; `toText`
 * may remember texts of records, so that a list after a change is made of what is there already.
 */
export function createListReply<R extends CurrentOrNot>(
  answers: AnswerCache<R>,
  pool: MemoryPool,
  toText: RecordText = (record, toJson) => toJson(record),
): ReplyWithList<R> {
  const scheduler = createScheduler();
  let streams = 0;

  const stream = (pieces: Pieces): HttpReply => {
    if (streams >= streamsMax) throw tooManyLists();
    streams += 1;
    const body = Readable.from(pieces).once('close', () => {
      streams -= 1;
    });
    return { ...jsonTextReply(200, ''), body, streamBytesMax };
  };

  return ({ key, read, toJson }) =>
    answers.get(key, (records, keep) =>
      andThen(read(records), (page) =>
        andThen(
          gatherWithin({ pool, scheduler, toJson: (record) => toText(record, toJson) }, page),
          (body) =>
            typeof body === 'string' || Buffer.isBuffer(body)
              ? keep(taggedReply(body, records.version))
              : stream(body),
        ),
      ),
    );
}

/**
 * The tag of the answer with these records, which are all of a list: empty where that is streamed,
 * and so has none. `version` as in a reading.
 */
export function tagOfList<T>(
  records: readonly T[],
  toJson: (record: T) => string,
  version: string | undefined,
): string {
  const texts = new ListTexts();
  for (const record of records) {
    texts.add(toJson(record));
    if (texts.length > bufferedLengthMax) return '';
  }
  return createEtag(texts.end(), version);
}

type Pieces = AsyncGenerator<Buffer, void, undefined>;

interface Tools<T> {
  readonly pool: MemoryPool;
  readonly scheduler: Scheduler;
  readonly toJson: (record: T) => string;
}

function gatherWithin<T>(tools: Tools<T>, page: ListPage<T>): MaybePromise<Answer | Pieces> {
  // Others run between two pages: what is held meanwhile is counted.
  const room = tools.pool.open();
  const body = gather({ ...tools, room, texts: new ListTexts() }, page);
  return isPromise(body) ? body.finally(() => room.release()) : body;
}

function tooManyLists(): AppError {
  const facts = { retryAfterSeconds: 5 };
  return new AppError('overloaded', 'Too many long lists are being read.', facts);
}

interface Gathering<T> extends Tools<T> {
  readonly texts: ListTexts;
  readonly room: Reservation;
}

/** The whole array, or pieces of it from its start where it is too long for one. */
function gather<T>(gathering: Gathering<T>, page: ListPage<T>): MaybePromise<Answer | Pieces> {
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
  // The whole answer is made beside its pieces.
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
        // Others are served between two pieces, also where the client is fast.
        await scheduler.yield();
      }
    }
    if (page.next === undefined) break;
  }
  yield toBytes(texts.end());
}

/** The texts of an array, turned into bytes piece by piece: all at once hold the event loop. */
class ListTexts {
  /** Characters so far. */
  length = 0;
  /** Bytes of the pieces. */
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

  /** The pieces that have not been taken yet. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    if (pieces.length > 0) this.#pieces = [];
    return pieces;
  }

  /** What has not been taken yet, and the end of the array. */
  end(): Answer {
    const start = this.#texts.length === 0 && this.#start === ',' ? '' : this.#start;
    const last = toAnswer(`${start}${this.#texts.join(',')}]`);
    return this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, toBytes(last)]);
  }
}
