/**
 * Whole answers, kept for as long as nothing was written: each belongs to one revision of the
 * store, and the first look after a write forgets all of them. So an old answer is never given.
 */

import { andThen, type MaybePromise } from '../maybe-promise.ts';

/** JSON as it is sent: a short one as text, which goes out in one piece with its head. */
export type Answer = string | Buffer;

/** From here on the bytes are kept: to encode a long text anew each time costs more. */
const textLengthMax = 2_048;

export function toAnswer(text: string): Answer {
  return text.length < textLengthMax ? text : Buffer.from(text);
}

/** An entry without its key and answer: its place in the map, and what stands before texts. */
const entryBytes = 200;

/** A character of a text takes two bytes at most. */
function bytesOf(answer: Answer): number {
  return typeof answer === 'string' ? 2 * answer.length : answer.length;
}

export interface AnswerCache {
  /**
   * The kept answer, or the one that `make` makes, which is then kept; undefined never is. A key
   * is of Latin-1.
   */
  get<A extends Answer | undefined>(
    key: string,
    make: () => MaybePromise<A>,
  ): MaybePromise<A | Answer>;
  /** True where nothing is kept now: then no key need be made to look for it. */
  isEmpty(): boolean;
  /** The kept answer. */
  find(key: string): Answer | undefined;
  /**
   * What stands now: to be asked for before an answer is made, and given to `keep` after it.
   * Undefined where nothing would be kept.
   */
  revision(): number | undefined;
  /** Keeps an answer, unless something was written since `revision`. */
  keep(key: string, answer: Answer, revision: number | undefined): void;
}

export interface AnswerCacheOptions {
  /** Keys and answers together; 0 keeps nothing. */
  readonly bytesMax: number;
  /** The store's revision; undefined where it cannot tell: then nothing is kept. */
  readonly revision: () => number | undefined;
}

export function createAnswerCache(options: AnswerCacheOptions): AnswerCache {
  const { bytesMax } = options;
  // Where nothing is kept, nobody need make a key.
  const revision = bytesMax === 0 ? () => undefined : options.revision;
  const answers = new Map<string, Answer>();
  let bytes = 0;
  let validAt: number | undefined;

  const isEmpty = (): boolean => {
    if (revision() === validAt) return answers.size === 0;
    answers.clear();
    bytes = 0;
    validAt = revision();
    return true;
  };
  const find = (key: string): Answer | undefined => (isEmpty() ? undefined : answers.get(key));

  const keep = (key: string, answer: Answer, since: number | undefined): void => {
    const size = entryBytes + key.length + bytesOf(answer);
    // A write that came while the answer was made leaves it in doubt: it is given, not kept.
    if (since === undefined || since !== validAt || since !== revision() || size > bytesMax) return;
    if (bytes + size > bytesMax) {
      answers.clear();
      bytes = 0;
    }
    if (!answers.has(key)) bytes += size;
    // A copy: a key that was cut out of a target, or put together, would keep all of that alive.
    answers.set(Buffer.from(key, 'latin1').toString('latin1'), answer);
  };

  return {
    revision,
    isEmpty,
    find,
    keep,
    get(key, make) {
      const known = find(key);
      if (known !== undefined) return known;
      const since = revision();
      return andThen(make(), (answer) => {
        if (answer !== undefined) keep(key, answer, since);
        return answer;
      });
    },
  };
}
