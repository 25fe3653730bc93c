/**
 * A JSON array as an answer: one buffer as long as it is small; piece by piece where it is large,
 * so that no list takes the memory of all its records, or the time of everybody else. Its records
 * are read page by page, once, and a long list no faster than its client takes it.
 */

import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '../errors.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { MemoryPool, Reservation } from '../memory-pool.ts';
import { type Answer, type AnswerCache, type CurrentOrNot, toAnswer } from './answer-cache.ts';
import { taggedReply } from './etag.ts';
import { type HttpReply, jsonTextReply } from './message.ts';

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

/** `answers` keeps lists that are small; `pool` counts what is gathered over several pages. */
export function createListReply<R extends CurrentOrNot>(
  answers: AnswerCache<R>,
  pool: MemoryPool,
): ReplyWithList<R> {
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
        andThen(gatherWithin(pool, page, toJson), (body) =>
          typeof body === 'string' || Buffer.isBuffer(body)
            ? keep(taggedReply(body, records.version))
            : stream(body),
        ),
      ),
    );
}

type Pieces = AsyncGenerator<Buffer, void, undefined>;

interface Gathered {
  readonly texts: string[];
  length: number;
  /** Others run between two pages: what is held meanwhile is counted. */
  readonly room: Reservation;
}

function gatherWithin<T>(
  pool: MemoryPool,
  page: ListPage<T>,
  toJson: (record: T) => string,
): MaybePromise<Answer | Pieces> {
  const room = pool.open();
  const body = gather(page, toJson, { texts: [], length: 0, room });
  return isPromise(body) ? body.finally(() => room.release()) : body;
}

function tooManyLists(): AppError {
  const facts = { retryAfterSeconds: 5 };
  return new AppError('overloaded', 'Too many long lists are being read.', facts);
}

/** The whole array, or pieces of it from its start where it is too long for one. */
function gather<T>(
  page: ListPage<T>,
  toJson: (record: T) => string,
  gathered: Gathered,
): MaybePromise<Answer | Pieces> {
  const { texts } = gathered;
  for (const [at, record] of page.records.entries()) {
    const text = toJson(record);
    texts.push(text);
    gathered.length += text.length;
    if (gathered.length > bufferedLengthMax) {
      const rest = { records: page.records.slice(at + 1), next: page.next };
      return toPieces(texts, rest, toJson);
    }
  }
  const { next } = page;
  if (next === undefined) return toAnswer(`[${texts.join(',')}]`);
  // A character takes at most two bytes; the text of a whole list is made beside its pieces.
  if (!gathered.room.grow(4 * gathered.length - gathered.room.bytes)) throw tooManyLists();
  return nextTurn()
    .then(next)
    .then((following) => gather(following, toJson, gathered));
}

async function* toPieces<T>(
  texts: readonly string[],
  rest: ListPage<T>,
  toJson: (record: T) => string,
): Pieces {
  for (const piece of packed('[', texts)) yield piece;
  for (let page = rest; ; page = await page.next()) {
    for (const piece of packed(',', toTexts(page.records, toJson))) {
      yield piece;
      // Others are served between two pieces, also where the client is fast.
      await nextTurn();
    }
    if (page.next === undefined) break;
  }
  yield Buffer.from(']');
}

/** Each text behind a comma, the first one behind `start`. */
function* packed(start: string, texts: Iterable<string>): Generator<Buffer> {
  let [piece, separator] = ['', start];
  for (const text of texts) {
    piece += separator + text;
    separator = ',';
    if (piece.length < pieceLength) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  if (piece !== '') yield Buffer.from(piece);
}

function* toTexts<T>(records: readonly T[], toJson: (record: T) => string): Generator<string> {
  for (const record of records) yield toJson(record);
}
