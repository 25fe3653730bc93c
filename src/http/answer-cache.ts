/**
 * A cache of whole replies. Each belongs to a reading of the records, which tells whether anything
 * that it read has been written to since.
 */

import { BoundedMap } from '../bounded-map.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { HttpReply } from './message.ts';

/** JSON to send. A short one is a string, which Node writes in one piece with the head. */
export type Answer = string | Buffer;

/** Longer texts are kept as bytes: encoding them for each reply would cost more. */
const textLengthMax = 2_048;

export function toAnswer(text: string): Answer {
  return text.length < textLengthMax ? text : Buffer.from(text);
}

export function toBytes(answer: Answer): Buffer {
  return typeof answer === 'string' ? Buffer.from(answer) : answer;
}

/** Approximate memory of an entry without key and body, in bytes. */
const entryBytes = 500;

/** The records of one reply, which remember what was read. */
export interface CurrentOrNot {
  /** False, permanently, once anything that was read has been written to. */
  isCurrent(): boolean;
  /** Identifies the state that was read; undefined if the store cannot tell. */
  readonly version: string | undefined;
}

/** Caches a reply whose body is not a stream, and returns it. */
export type Keep = (reply: HttpReply) => HttpReply;

export interface AnswerCache<R extends CurrentOrNot> {
  /** Opens a reading of the present records, for one reply. */
  readonly read: () => R;
  /**
   * Returns the cached reply for `key` (Latin-1 text), or the result of `make`, which must depend
   * on nothing but `records`. Without a key nothing is cached.
   */
  get(
    key: string | undefined,
    make: (records: R, keep: Keep) => MaybePromise<HttpReply>,
  ): MaybePromise<HttpReply>;
}

export interface AnswerCacheOptions<R extends CurrentOrNot> extends Pick<AnswerCache<R>, 'read'> {
  /** The limit for keys and replies together; 0 disables the cache. */
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
    // If a write came while the reply was made, it is sent but not cached.
    if (bytes > bytesMax || !reading.isCurrent()) return;
    // A copy, because V8 keeps the whole target alive for a key that is a slice of it.
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

/** A character of a string takes at most two bytes. */
function bytesOf({ body }: HttpReply): number {
  if (typeof body === 'string') return 2 * body.length;
  return Buffer.isBuffer(body) ? body.length : Number.POSITIVE_INFINITY;
}
