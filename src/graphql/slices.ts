/** Resolves long lists in slices, so that other requests run in between. */

import type { MaybePromise } from '../maybe-promise.ts';
import type { Scheduler } from '../scheduler.ts';

/** Records in one slice: with their related records they take a few milliseconds. */
export const sliceLength = 50;
/** Fields, of all lists of an operation, in one slice: they take about as long. */
const fieldsOfSlice = 4_000;

export interface SliceOptions {
  /** The number of fields of all records together. */
  readonly fields: number;
  /** If true, the records have no related records: more of them are one slice. */
  readonly areLeaves?: boolean;
}

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
   * iteration, the whole list is a promise.
   */
  of<T>(list: readonly T[], options: SliceOptions): MaybePromise<readonly MaybePromise<T>[]> {
    if (this.#fields > fieldsOfSlice) return this.#later(list, options);
    const { fields, areLeaves = false } = options;
    this.#fields += fields;
    if (list.length <= sliceLength) return list;
    const length = areLeaves ? leavesOfSlice(fields / list.length) : sliceLength;
    if (list.length <= length) return list;
    let slice = Promise.resolve();
    return list.map((record, index) => {
      if (index < length) return record;
      if (index % length === 0) slice = slice.then(() => this.#next());
      return slice.then(() => record);
    });
  }

  async #later<T>(list: readonly T[], options: SliceOptions): Promise<readonly MaybePromise<T>[]> {
    await this.#next();
    return this.of(list, options);
  }

  async #next(): Promise<void> {
    await this.#scheduler.yield();
    this.#fields = 0;
  }
}

/** A promise for each record takes longer than the record, if it has a few fields. */
function leavesOfSlice(fieldsOfRecord: number): number {
  return Math.max(sliceLength, Math.floor(fieldsOfSlice / (1 + fieldsOfRecord)));
}
