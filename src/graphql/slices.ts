/** Resolves long lists in slices, so that other requests run in between. */

import type { MaybePromise } from '../maybe-promise.ts';
import type { Scheduler } from '../scheduler.ts';

/** Records of a slice: with their related records a few milliseconds of work. */
export const sliceLength = 50;
/** Fields of all lists of an operation in one slice: about as much work. */
const fieldsOfSlice = 4_000;

/** The lists of one operation, which count together. */
export class Slices {
  readonly #scheduler: Scheduler;
  #fields = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /**
   * A short list is returned as it is: values need no promises. In a longer one the records after
   * the first slice are promises, fulfilled slice by slice. Where the operation has resolved enough
   * fields for now, the whole list is a promise. `fields`: the fields of all records together.
   */
  of<T>(list: readonly T[], fields: number): MaybePromise<readonly MaybePromise<T>[]> {
    if (this.#fields > fieldsOfSlice) return this.#later(list, fields);
    this.#fields += fields;
    if (list.length <= sliceLength) return list;
    let slice = Promise.resolve();
    return list.map((record, index) => {
      if (index < sliceLength) return record;
      if (index % sliceLength === 0) slice = slice.then(() => this.#next());
      return slice.then(() => record);
    });
  }

  async #later<T>(list: readonly T[], fields: number): Promise<readonly MaybePromise<T>[]> {
    await this.#next();
    return this.of(list, fields);
  }

  async #next(): Promise<void> {
    await this.#scheduler.yield();
    this.#fields = 0;
  }
}
