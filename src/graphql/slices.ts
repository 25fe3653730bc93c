/** Long lists in slices: other requests get their turn while one of them asks for everything. */

import type { MaybePromise } from '../maybe-promise.ts';
import type { Turns } from './turns.ts';

/** Records of one slice: with their related records a few milliseconds of work. */
export const sliceLength = 250;
/** Fields of all lists of an operation in one turn: about as much work. */
const fieldsOfTurn = 20_000;

/** The lists of one operation, which share what it may do in one turn of the loop. */
export class Slices {
  readonly #turns: Turns;
  #fields = 0;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /**
   * The list itself while it is short: values cost no promise. Of a longer one the records beyond
   * the first slice are promises, which later turns of the loop keep slice by slice; and where the
   * operation has had its part of this turn, the whole list is one. `fields`: of all its records.
   */
  of<T>(list: readonly T[], fields: number): MaybePromise<readonly MaybePromise<T>[]> {
    if (this.#fields > fieldsOfTurn) return this.#later(list, fields);
    this.#fields += fields;
    if (list.length <= sliceLength) return list;
    let turn = Promise.resolve();
    return list.map((record, index) => {
      if (index < sliceLength) return record;
      if (index % sliceLength === 0) turn = turn.then(() => this.#next());
      return turn.then(() => record);
    });
  }

  async #later<T>(list: readonly T[], fields: number): Promise<readonly MaybePromise<T>[]> {
    await this.#next();
    return this.of(list, fields);
  }

  async #next(): Promise<void> {
    await this.#turns.next();
    this.#fields = 0;
  }
}
