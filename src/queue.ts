/**
 * A queue, first in, first out. An array moves all of its members with each `shift()` once it has
 * more than 16,384 of them: each step of a long queue would be slow.
 */

export class Queue<T> {
  #items: (T | undefined)[] = [];
  /** The position of the first item; what is before it was taken. */
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Undefined if the queue is empty. */
  shift(): T | undefined {
    if (this.#first === this.#items.length) return undefined;
    const item = this.#items[this.#first];
    this.#items[this.#first++] = undefined; // not kept in memory
    // Half of it was taken: what is moved now is less than what was taken since the last time.
    if (this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}
