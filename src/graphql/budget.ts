/**
 * Limits on what one request may cost, checked while it runs: objects, and bytes of its result. The
 * schema has a cycle (`author { posts { author …`) and texts of up to a mebibyte: a short query can
 * ask for millions of objects or gibibytes of text, and no limit on documents prevents that. These
 * limits also bound the time that an operation holds the event loop.
 */

import { AppError, overloaded } from '../errors.ts';
import { type MemoryPool, type Reservation, uncountedBytesMax } from '../memory-pool.ts';

/** Thrown when the request exceeds its budget. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
  /** graphql-js locates every error, which is slow, except one that has a path already. */
  readonly path: readonly string[] = [];
}

export interface BudgetLimits {
  readonly objectsMax: number;
  /** Limit for the results, and for their JSON. */
  readonly bytesMax: number;
  /** Limit for records that were read for this request alone. */
  readonly recordBytesMax: number;
  /** Reserves the memory of both while they are in use. Absent for an event: only one is made. */
  readonly pool?: Pick<MemoryPool, 'open'>;
}

/** A result at most (R39), unless a quarter of the memory for all requests is less. */
const resultBytes = 4 * 1024 * 1024;
/** Records of a result that asks for few of their fields. */
const recordBytes = 16 * 1024 * 1024;

export function toBudgetLimits(
  objectsMax: number,
  waitingBytesMax: number,
): Omit<BudgetLimits, 'pool'> {
  const share = Math.floor(waitingBytesMax / 4);
  return {
    objectsMax,
    bytesMax: Math.min(resultBytes, share),
    recordBytesMax: Math.min(recordBytes, share),
  };
}

/** The pool is asked for this many bytes at a time. */
const stepBytes = 65_536;

/** The budget of one request, batch or event. The code that creates it must release it. */
export class Budget {
  readonly #limits: BudgetLimits;
  #reservation: Reservation | undefined;
  /** Objects requested so far, including refused ones. */
  #objects = 0;
  /** Approximate memory of the results before they become JSON. */
  #bytes = 0;
  #jsonBytes = 0;
  #recordBytes = 0;
  /** One error for all resolvers: many may exceed the budget before the execution ends. */
  #error: BudgetError | undefined;
  /**
   * Set at the first refusal, and permanent: `content_too_large` if the request asks for too much,
   * `overloaded` if all requests together hold too much.
   */
  refusal: AppError | undefined;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Charges objects and bytes of results. Returns false once the budget is exceeded. */
  covers(objects: number, bytes: number): boolean {
    this.#objects += objects;
    this.#bytes += bytes;
    return this.#isCovered();
  }

  /** Like `covers`, but throws a BudgetError instead of returning false. */
  charge(objects: number, bytes: number): void {
    if (!this.covers(objects, bytes)) throw (this.#error ??= new BudgetError());
  }

  /** Charges records that were read for this request alone. Throws a BudgetError. */
  chargeRecords(bytes: number): void {
    this.#recordBytes += bytes;
    this.charge(0, 0);
  }

  /** Charges the JSON of a result. Returns false once the budget is exceeded. */
  coversJson(bytes: number): boolean {
    this.#jsonBytes += bytes;
    return this.#isCovered();
  }

  /** Returns its memory to the pool. */
  release(): void {
    this.#reservation?.release();
    this.#reservation = undefined;
  }

  #isCovered(): boolean {
    if (this.refusal !== undefined) return false;
    const { objectsMax, bytesMax, recordBytesMax } = this.#limits;
    if (this.#objects > objectsMax) this.refusal = tooMuch(`${objectsMax} objects`);
    else if (Math.max(this.#bytes, this.#jsonBytes) > bytesMax) {
      this.refusal = tooMuch(`${bytesMax} bytes`);
    } else if (this.#recordBytes > recordBytesMax) {
      this.refusal = tooMuch(`${recordBytesMax} bytes of records`);
    } else if (!this.#reserve(this.#bytes + this.#jsonBytes + this.#recordBytes)) {
      this.refusal = overloaded('Too many responses are being made or sent.');
    }
    if (this.refusal === undefined) return true;
    // The partial result is not sent, so its memory is free.
    this.release();
    return false;
  }

  /** Grows in steps, so that the pool is not asked for each object. */
  #reserve(bytes: number): boolean {
    const { pool } = this.#limits;
    if (bytes <= uncountedBytesMax || pool === undefined) return true;
    const reservation = (this.#reservation ??= pool.open());
    const missing = bytes - reservation.bytes;
    return missing <= 0 || reservation.grow(Math.max(missing, stepBytes));
  }
}

function tooMuch(limit: string): AppError {
  const message =
    `The request asks for more than ${limit}; ` +
    'ask for less at a time, with `first` and `after`.';
  return new AppError('content_too_large', message);
}
