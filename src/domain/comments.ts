/**
 * Comments as events: adding one, and the topic that subscribers read. A comment is stored, then
 * published, in the order stored (Spec §6 rule 1, R30).
 */

import { AppError } from '../errors.ts';
import { andThen } from '../maybe-promise.ts';
import type { Comment } from '../store/model.ts';
import { isRepeated } from '../store/once.ts';
import type { Store } from '../store/store.ts';
import { mayRead, type Reader } from './readers.ts';

/** Comments queued for one subscription before they become events; sockets have limits too. */
const commentsQueuedMax = 4_096;
/** Approximate memory of a comment without its text, in bytes. */
const commentBytes = 512;

/** `addComment`, and the topic of added comments. `queueBytesMax`: see `TopicOptions`. */
export function createComments(store: CommentStore, queueBytesMax: number) {
  const commentAdded = createTopic<Comment>({
    follow: store.comments.watch,
    queueMax: commentsQueuedMax,
    queueBytesMax,
    bytesOf: ({ content }) => commentBytes + content.length * 2,
  });
  return {
    commentAdded,
    addComment: createAddComment(store, (comment) => commentAdded.publish(comment)),
  };
}

type CommentStore = Pick<Store, 'comments' | 'posts' | 'requests'>;
type Write = Parameters<Store['comments']['add']>;

export type AddComment = ReturnType<typeof createAddComment>;

/** `publish` delivers a comment to every subscriber of `commentAdded`. */
export function createAddComment(
  { comments, posts, requests }: CommentStore,
  publish: (comment: Comment) => void,
) {
  const add = (write: Write): ReturnType<Store['comments']['add']> =>
    andThen(comments.add(...write), (added) => {
      // A repeated one was published when it was stored. A store that other nodes write to reports
      // every new comment itself, these included.
      if (added && !isRepeated(added) && comments.watch === undefined) publish(added);
      return added;
    });
  /**
   * Returns undefined if the post does not exist for the reader (R44): nothing is stored or
   * published then. A write that was done before is found first, as if the post had been removed.
   */
  return (reader: Reader | undefined, ...write: Write): ReturnType<typeof add> => {
    if (reader === undefined) return add(write);
    const [postId, , once] = write;
    const addIfRead = () =>
      andThen(posts.find(postId), (post) => (mayRead(reader, post) ? add(write) : undefined));
    return andThen(once && requests.find(once), (repeated) => repeated ?? addIfRead());
  };
}

interface TopicOptions<T> {
  /** The memory that a value takes, in bytes. */
  readonly bytesOf: (value: T) => number;
  /** Values that may be queued for one subscriber. */
  readonly queueMax: number;
  /**
   * Bytes of values that may be queued for one subscriber; a single value may exceed it. It also
   * bounds all queues together, because they hold the same, latest values.
   */
  readonly queueBytesMax: number;
  /**
   * An additional source of values, followed while there are subscribers. Returns a function that
   * stops following.
   */
  readonly follow?: ((publish: (value: T) => void) => () => void) | undefined;
}

export type Topic<T> = ReturnType<typeof createTopic<T>>;

/** The values of one subscriber. */
export interface Subscribed<T> extends AsyncIterableIterator<T> {
  /** How many values had been published with the last value that `next()` has returned. */
  readonly position: number;
  /** The next values, `count` at most, as far as they have been published. */
  ahead(count: number): readonly T[];
}

/**
 * A bounded topic: every subscriber gets what is published, in that order. There is no replay: a
 * subscriber gets only values published after `subscribe()`.
 */
export function createTopic<T>(options: TopicOptions<T>) {
  const subscribers = new Set<TopicQueue<T>>();
  let stop: (() => void) | undefined;
  let published = 0;
  /** Queues `value` for every subscriber. Never throws and never waits. */
  const publish = (value: T): void => {
    // A Set allows a subscriber to be removed during the iteration.
    published += 1;
    for (const subscriber of subscribers) subscriber.push(value, published);
  };
  return {
    publish,
    /**
     * The subscription begins with this call, not with the first `next()`. A subscriber whose queue
     * is full is dropped: its `next()` rejects once with `overloaded`, its queue is discarded, and
     * other subscribers lose nothing. `return()` ends it and settles the pending `next()`. Call
     * `next()` again only after the previous call has settled. Values for which `isWanted` is false
     * are left out.
     */
    subscribe(isWanted: (value: T) => boolean = () => true): Subscribed<T> {
      const subscriber = createQueue(options, isWanted, () => {
        subscribers.delete(subscriber);
        if (subscribers.size > 0) return;
        stop?.();
        stop = undefined;
      });
      subscribers.add(subscriber);
      stop ??= options.follow?.(publish);
      return subscriber;
    },
    /** How many values have been published. */
    get position() {
      return published;
    },
    /** The number of subscribers. */
    get size() {
      return subscribers.size;
    },
  };
}

interface TopicQueue<T> extends Subscribed<T> {
  push(value: T, position: number): void;
}

/**
 * Not an async generator: the `return()` of a generator waits for its pending `next()`, so that the
 * subscriber would stay in the topic until the next value.
 */
function createQueue<T>(
  { queueMax, queueBytesMax, bytesOf }: TopicOptions<T>,
  isWanted: (value: T) => boolean,
  leave: () => void,
): TopicQueue<T> {
  let values: T[] = [];
  /** Bytes of the queued values. */
  let bytes = 0;
  /** The position of the value that was taken last: the values behind it have no gap. */
  let position = 0;
  let isOpen = true;
  /** The error for the next `next()`, which reports it once. */
  let failure: AppError | undefined;
  /** Makes a pending `next()` check the queue again. A second call takes a tenth of an event. */
  let wake = (): void => undefined;

  const end = (reason?: AppError): void => {
    isOpen = false;
    failure = reason;
    values = [];
    leave();
    wake();
  };
  return {
    get position() {
      return position;
    },
    ahead: (count) => values.slice(0, count).filter(isWanted),
    push(value, at) {
      const { length } = values;
      // A value that is not wanted is queued too behind one that is: so all queues hold the same,
      // latest values, and their sum is bounded.
      if (length === 0 && !isWanted(value)) return;
      if (length === 0) position = at - 1;
      bytes += bytesOf(value);
      if (length < queueMax && (length === 0 || bytes <= queueBytesMax)) {
        values.push(value);
        if (length === 0) wake();
      } else {
        const message = 'The subscriber does not keep up with what is published.';
        end(new AppError('overloaded', message));
      }
    },
    async next() {
      for (;;) {
        while (values.length > 0) {
          // The length was checked; `T` may include undefined.
          const value = values.shift() as T;
          bytes -= bytesOf(value);
          position += 1;
          if (isWanted(value)) return { value, done: false };
        }
        if (!isOpen) break;
        await new Promise<void>((resolve) => void (wake = resolve));
      }
      const reason = failure;
      failure = undefined;
      if (reason !== undefined) throw reason;
      return { value: undefined, done: true };
    },
    return() {
      end();
      return Promise.resolve({ value: undefined, done: true });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
