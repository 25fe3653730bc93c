/**
 * A bounded topic: what is published reaches every subscriber, in the order published (Spec §6
 * rule 1, R30). There is no replay: a subscriber gets what comes after `subscribe()`.
 */

import { AppError } from '../errors.ts';

export interface Topic<T> {
  /** Hands `value` to every subscriber. Never throws and never waits for one of them. */
  publish(value: T): void;
  /**
   * Takes part from this call on, not from the first `next()` on. A subscriber whose queue is full
   * is dropped: its `next()` rejects once with `overloaded`, what it had not read is let go, and
   * the others lose nothing. `return()` ends it at once and settles a `next()` that waits: there is
   * one such call at a time.
   */
  subscribe(): AsyncIterableIterator<T>;
  /** Subscribers at this moment. */
  readonly size: number;
}

export interface TopicOptions<T> {
  /** What a value takes in memory. */
  readonly bytesOf: (value: T) => number;
  /** Values that wait for one subscriber. */
  readonly queueMax: number;
  /**
   * Bytes of values that wait for one subscriber; one value may wait however long it is. It bounds
   * all queues together: each holds the last of the same values.
   */
  readonly queueBytesMax: number;
  /**
   * Where values come from, if not from `publish` alone: it is followed while there are
   * subscribers. Gives back how to stop.
   */
  readonly follow?: ((publish: (value: T) => void) => () => void) | undefined;
}

/** A topic of its own; nothing is shared between two of them. */
export function createTopic<T>(options: TopicOptions<T>): Topic<T> {
  const subscribers = new Set<Subscriber<T>>();
  let stop: (() => void) | undefined;
  const publish = (value: T): void => {
    // A subscriber that leaves while this runs is only removed from the set: safe in a Set.
    for (const subscriber of subscribers) subscriber.push(value);
  };
  return {
    publish,
    subscribe() {
      const leave = (): void => {
        subscribers.delete(subscriber);
        if (subscribers.size > 0) return;
        stop?.();
        stop = undefined;
      };
      const subscriber = new Subscriber<T>(options, leave);
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
 * Not an async generator: the `return()` of one waits for a pending `next()`, so that it would
 * keep its place in the topic until one more value came.
 */
class Subscriber<T> implements AsyncIterableIterator<T> {
  readonly #options: TopicOptions<T>;
  readonly #leave: () => void;
  #values: T[] = [];
  /** Of the values. */
  #bytes = 0;
  #isOpen = true;
  /** What the next `next()` rejects with, once. */
  #failure: AppError | undefined;
  /** Lets a `next()` that waits look again. */
  #wake: () => void = () => undefined;

  constructor(options: TopicOptions<T>, leave: () => void) {
    this.#options = options;
    this.#leave = leave;
  }

  push(value: T): void {
    const { queueMax, queueBytesMax, bytesOf } = this.#options;
    const { length } = this.#values;
    this.#bytes += bytesOf(value);
    if (length < queueMax && (length === 0 || this.#bytes <= queueBytesMax)) {
      this.#values.push(value);
      this.#wake();
    } else {
      this.#end(tooSlow());
    }
  }

  async next(): Promise<IteratorResult<T>> {
    if (this.#values.length === 0 && this.#isOpen) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#values.length > 0) {
      // The length was checked; `T` itself may have undefined among its values.
      const value = this.#values.shift() as T;
      this.#bytes -= this.#options.bytesOf(value);
      return { value, done: false };
    }
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

function tooSlow(): AppError {
  return new AppError('overloaded', 'The subscriber does not keep up with what is published.');
}
