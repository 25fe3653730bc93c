/** Resolves long lists in slices, so that other requests run in between. */

import type { MaybePromise } from '../maybe-promise.ts';
import type { Scheduler } from '../scheduler.ts';

/** Records in one slice: with their related records they take a few milliseconds. */
export const sliceLength = 50;
/** Fields, of all lists of an operation, in one slice: they take about as long. */
const fieldsOfSlice = 4_000;

/** The lists of one operation, which share a limit. */
export class Slices {
  readonly #scheduler: Scheduler;
  #fields = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /**
   * Returns a short list unchanged: values are faster than promises. In a longer list, records
   * after the first slice are promises, fulfilled slice by slice. After many fields in this
   * iteration, the whole list is a promise. `fields`: the number of fields of all records together.
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
