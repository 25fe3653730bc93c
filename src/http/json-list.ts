/**
 * A JSON array as an answer: one buffer as long as it is small; piece by piece where it is large,
 * so that no list takes the memory of all its records again, or the time of everybody else.
 */

import { Readable } from 'node:stream';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import { type Answer, type AnswerCache, type CurrentOrNot, toAnswer } from './answer-cache.ts';
import { taggedReply } from './etag.ts';
import { type HttpReply, jsonTextReply } from './message.ts';

export interface JsonList<R, T> {
  /** The answer's name in the cache; undefined: it is not kept. */
  readonly key: string | undefined;
  readonly list: (records: R) => MaybePromise<readonly T[]>;
  /** The JSON text of one item. */
  readonly toJson: (item: T) => string;
}

/** Characters up to which a list is one buffer. */
const bufferedLengthMax = 4 * 1024 * 1024;
/** Two pieces on their way, each of which ends with a record of up to 1 MiB. */
const streamBytesMax = 2 * 1024 * 1024;
/** Characters of one piece, at least: smaller ones cost more than they are worth. */
const pieceLength = 65_536;

/** A list, which is kept in `answers` where it is small. */
export function listReply<R extends CurrentOrNot, T>(
  answers: AnswerCache<R>,
  { key, list, toJson }: JsonList<R, T>,
): MaybePromise<HttpReply> {
  return answers.get(key, (records, keep) =>
    andThen(list(records), (items) => {
      const body = toWhole(items, toJson);
      return body === undefined
        ? streamReply(items, toJson)
        : keep(taggedReply(body, records.version));
    }),
  );
}

/** Undefined where the list is too long for one piece. */
function toWhole<T>(items: readonly T[], toJson: (item: T) => string): Answer | undefined {
  const texts: string[] = [];
  let length = 0;
  for (const item of items) {
    const text = toJson(item);
    length += text.length;
    if (length > bufferedLengthMax) return undefined;
    texts.push(text);
  }
  return toAnswer(`[${texts.join(',')}]`);
}

function streamReply<T>(items: readonly T[], toJson: (item: T) => string): HttpReply {
  const { headers } = jsonTextReply(200, '');
  const body = Readable.from(toPieces(items, toJson));
  return { status: 200, headers, body, streamBytesMax };
}

function* toPieces<T>(items: readonly T[], toJson: (item: T) => string): Generator<Buffer> {
  let piece = '';
  let separator = '[';
  for (const item of items) {
    piece += separator + toJson(item);
    separator = ',';
    if (piece.length < pieceLength) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  yield Buffer.from(`${piece}]`);
}
