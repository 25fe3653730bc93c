/**
 * Comments as events: adding one, and the topic that subscribers read. A comment is stored, then
 * published, in the order stored (Spec §6 rule 1, R30).
 */

import { AppError } from '../errors.ts';
import { andThen } from '../maybe-promise.ts';
import type { Comment } from '../store/model.ts';
import type { Store } from '../store/store.ts';

/** Comments queued for one subscription before they become events; sockets have limits too. */
const commentsQueuedMax = 4_096;
/** Approximate memory of a comment without its text, in bytes. */
const commentBytes = 512;

/** How comments are added, and the topic of those that were. `queueBytesMax` as for a topic. */
export function createComments(store: Pick<Store, 'comments'>, queueBytesMax: number) {
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

/** Returns undefined if the post does not exist: nothing is stored or published then. */
export type AddComment = Store['comments']['add'];

/** `publish` delivers a comment to every subscriber of `commentAdded`. */
export function createAddComment(
  { comments }: Pick<Store, 'comments'>,
  publish: (comment: Comment) => void,
): AddComment {
  const add: AddComment = (postId, content) => comments.add(postId, content);
  // A store that other nodes write to reports every new comment itself, these included.
  if (comments.watch !== undefined) return add;
  return (postId, content) =>
    andThen(add(postId, content), (comment) => {
      if (comment !== undefined) publish(comment);
      return comment;
    });
}

/**
 * A bounded topic: every subscriber gets what is published, in that order. There is no replay: a
 * subscriber gets only values published after `subscribe()`.
 */
export interface Topic<T> {
  /** Queues `value` for every subscriber. Never throws and never waits. */
  publish(value: T): void;
  /**
   * The subscription begins with this call, not with the first `next()`. A subscriber whose queue
   * is full is dropped: its `next()` rejects once with `overloaded`, its queue is discarded, and
   * other subscribers lose nothing. `return()` ends it and settles the pending `next()`. Call
   * `next()` again only after the previous call has settled. `isWanted`: others are left out.
   */
  subscribe(isWanted?: (value: T) => boolean): AsyncIterableIterator<T>;
  /** The number of subscribers. */
  readonly size: number;
}

export interface TopicOptions<T> {
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

/** Creates an independent topic. */
export function createTopic<T>(options: TopicOptions<T>): Topic<T> {
  const subscribers = new Set<TopicQueue<T>>();
  let stop: (() => void) | undefined;
  const publish = (value: T): void => {
    // A Set allows a subscriber to be removed during the iteration.
    for (const subscriber of subscribers) subscriber.push(value);
  };
  return {
    publish,
    subscribe(isWanted = () => true) {
      const leave = (): void => {
        subscribers.delete(subscriber);
        if (subscribers.size > 0) return;
        stop?.();
        stop = undefined;
      };
      const subscriber = new TopicQueue<T>(options, isWanted, leave);
      subscribers.add(subscriber);
      stop ??= options.follow?.(publish);
      return subscriber;
    },
    get size() {
      return subscribers.size;
    },
  };
}

/**
 * Not an async generator: the `return()` of a generator waits for its pending `next()`, so that the
 * subscriber would stay in the topic until the next value.
 */
class TopicQueue<T> implements AsyncIterableIterator<T> {
  readonly #options: TopicOptions<T>;
  readonly #isWanted: (value: T) => boolean;
  readonly #leave: () => void;
  #values: T[] = [];
  /** Bytes of the queued values. */
  #bytes = 0;
  #isOpen = true;
  /** The error for the next `next()`, which reports it once. */
  #failure: AppError | undefined;
  /** Makes a pending `next()` check the queue again. */
  #wake: () => void = () => undefined;

  constructor(options: TopicOptions<T>, isWanted: (value: T) => boolean, leave: () => void) {
    this.#options = options;
    this.#isWanted = isWanted;
    this.#leave = leave;
  }

  push(value: T): void {
    const { queueMax, queueBytesMax, bytesOf } = this.#options;
    const { length } = this.#values;
    // Behind a wanted value it is queued too: all queues then hold the same, latest values.
    if (length === 0 && !this.#isWanted(value)) return;
    this.#bytes += bytesOf(value);
    if (length < queueMax && (length === 0 || this.#bytes <= queueBytesMax)) {
      this.#values.push(value);
      this.#wake();
    } else {
      const message = 'The subscriber does not keep up with what is published.';
      this.#end(new AppError('overloaded', message));
    }
  }

  async next(): Promise<IteratorResult<T>> {
    do {
      if (this.#values.length === 0 && this.#isOpen) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      while (this.#values.length > 0) {
        // The length was checked; `T` may include undefined.
        const value = this.#values.shift() as T;
        this.#bytes -= this.#options.bytesOf(value);
        if (this.#isWanted(value)) return { value, done: false };
      }
    } while (this.#isOpen);
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    return { value: undefined, done: true };
  }

  return(): Promise<IteratorResult<T>> {
    this.#end();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(failure?: AppError): void {
    this.#isOpen = false;
    this.#failure = failure;
    this.#values = [];
    this.#leave();
    this.#wake();
  }
}
