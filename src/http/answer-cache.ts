/**
 * Whole replies, kept for as long as nothing was written to what they were made from: each belongs
 * to a reading of the records, which says whether it still is what would be read.
 */

import { BoundedMap } from '../bounded-map.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { HttpReply } from './message.ts';

/** JSON as it is sent: a short one as text, which goes out in one piece with its head. */
export type Answer = string | Buffer;

/** From here on the bytes are kept: to encode a long text anew each time costs more. */
const textLengthMax = 2_048;

export function toAnswer(text: string): Answer {
  return text.length < textLengthMax ? text : Buffer.from(text);
}

export function toBytes(answer: Answer): Buffer {
  return typeof answer === 'string' ? Buffer.from(answer) : answer;
}

/** A reply without its key and body: its places in maps, its reading and its headers. */
const entryBytes = 500;

/** Records to make an answer from, which note what of them is read. */
export interface CurrentOrNot {
  /** False for ever once something was written to what was read. */
  isCurrent(): boolean;
  /** Names what was read as it was then; undefined where that is not known. */
  readonly version: string | undefined;
}

/** Marks a reply, whose body is no stream, as one to be kept; gives it back. */
export type Keep = (reply: HttpReply) => HttpReply;

export interface AnswerCache<R extends CurrentOrNot> {
  /** The records as they are now, for one answer. */
  readonly read: () => R;
  /**
   * The reply that is kept for the key, of Latin-1, or the one that `make` makes of the records
   * which it is given, and of nothing else. Undefined is the key of nothing.
   */
  get(
    key: string | undefined,
    make: (records: R, keep: Keep) => MaybePromise<HttpReply>,
  ): MaybePromise<HttpReply>;
}

export interface AnswerCacheOptions<R extends CurrentOrNot> extends Pick<AnswerCache<R>, 'read'> {
  /** Keys and replies together; 0 keeps nothing. */
  readonly bytesMax: number;
}

interface Entry {
  readonly reply: HttpReply;
  readonly reading: CurrentOrNot;
}

export function createAnswerCache<R extends CurrentOrNot>(
  options: AnswerCacheOptions<R>,
): AnswerCache<R> {
  const { bytesMax, read } = options;
  const entries = new BoundedMap<Entry>(bytesMax);
  const keep = (key: string, reading: CurrentOrNot, reply: HttpReply): void => {
    const bytes = entryBytes + key.length + bytesOf(reply);
    // A write that came while the answer was made leaves it in doubt: it is given, not kept.
    if (bytes > bytesMax || !reading.isCurrent()) return;
    // A copy: a key that was cut out of a target, or put together, would keep all of that alive.
    entries.set(Buffer.from(key, 'latin1').toString('latin1'), { reply, reading }, bytes);
  };

  return {
    read,
    get(key, make) {
      const known = key === undefined ? undefined : entries.get(key);
      if (known?.reading.isCurrent() === true) return known.reply;
      const reading = read();
      return make(reading, (reply) => {
        if (key !== undefined) keep(key, reading, reply);
        return reply;
      });
    },
  };
}

/** A character of a text takes two bytes at most. */
function bytesOf({ body }: HttpReply): number {
  if (typeof body === 'string') return 2 * body.length;
  return Buffer.isBuffer(body) ? body.length : Number.POSITIVE_INFINITY;
}
