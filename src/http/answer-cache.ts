/**
 * Whole answers, kept for as long as nothing was written: each belongs to one revision of the
 * store, and the first look after a write forgets all of them. So an old answer is never given.
 */

import { andThen, type MaybePromise } from '../maybe-promise.ts';

export interface AnswerCache {
  /** The kept answer, or the one that `make` makes, which is then kept; undefined never is. */
  get<A extends Buffer | undefined>(
    key: string,
    make: () => MaybePromise<A>,
  ): MaybePromise<A | Buffer>;
}

export interface AnswerCacheOptions {
  /** Keys and answers together; 0 keeps nothing. */
  readonly bytesMax: number;
  /** The store's revision; undefined where it cannot tell: then nothing is kept. */
  readonly revision: () => number | undefined;
}

export function createAnswerCache({ bytesMax, revision }: AnswerCacheOptions): AnswerCache {
  const answers = new Map<string, Buffer>();
  let bytes = 0;
  let validAt: number | undefined;

  const forget = (now: number | undefined): void => {
    answers.clear();
    bytes = 0;
    validAt = now;
  };

  const keep = <A extends Buffer | undefined>(key: string, answer: A, since: number): A => {
    if (answer === undefined) return answer;
    const size = key.length + answer.length;
    // A write that came while the answer was made leaves it in doubt: it is given, not kept.
    if (size > bytesMax || revision() !== since) return answer;
    if (bytes + size > bytesMax) forget(since);
    answers.set(key, answer);
    bytes += size;
    return answer;
  };

  return {
    get(key, make) {
      const now = revision();
      if (now === undefined || bytesMax === 0) return make();
      if (now !== validAt) forget(now);
      const known = answers.get(key);
      if (known !== undefined) return known;
      return andThen(make(), (answer) => keep(key, answer, now));
    },
  };
}
