/**
 * Limits on what one request may cost, checked while it runs: objects, and bytes of its result. The
 * schema has a cycle (`author { posts { author …`) and texts of up to a mebibyte: a short query can
 * ask for millions of objects or gibibytes of text, and no limit on documents prevents that.
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
  /** Holds both, and records read for the request, while they are in use. */
  readonly pool: Pick<MemoryPool, 'open'>;
}

/** The pool is asked for this many bytes at a time. */
const stepBytes = 65_536;

/** The budget of one request, batch or subscription. The code that creates it must release it. */
export class Budget {
  readonly #limits: BudgetLimits;
  #held: Reservation | undefined;
  #jsonBytes = 0;
  #recordBytes = 0;
  /** One error for all resolvers: many may exceed the budget before the execution ends. */
  #error: BudgetError | undefined;
  /** Objects requested so far, including refused ones. */
  spent = 0;
  /** Approximate memory of the results before they become JSON, in bytes. */
  bytes = 0;
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
    this.spent += objects;
    this.bytes += bytes;
    return this.#check();
  }

  /** Like `covers`, but throws a BudgetError instead of returning false. */
  charge(objects: number, bytes: number): void {
    if (!this.covers(objects, bytes)) throw (this.#error ??= new BudgetError());
  }

  /** Objects that may still be requested. */
  get left(): number {
    return Math.max(0, this.#limits.objectsMax - this.spent);
  }

  /** Refuses a list that has more objects than are left. Throws a BudgetError. */
  refuseList(): never {
    this.charge(this.left + 1, 0);
    throw new BudgetError();
  }

  /** Charges the memory of records that were read for this request alone. Throws a BudgetError. */
  holdRecords(bytes: number): void {
    this.#recordBytes += bytes;
    this.charge(0, 0);
  }

  /** Like `covers`, for the JSON of the results. */
  coversJson(bytes: number): boolean {
    this.#jsonBytes += bytes;
    return this.#check();
  }

  /** Resets the budget for the next event of a subscription. */
  renew(): void {
    this.release();
    this.spent = 0;
    this.bytes = 0;
    this.#jsonBytes = 0;
    this.#recordBytes = 0;
    this.refusal = undefined;
  }

  /** Returns its memory to the pool. */
  release(): void {
    this.#held?.release();
    this.#held = undefined;
  }

  #check(): boolean {
    if (this.refusal !== undefined) return false;
    const { objectsMax, bytesMax } = this.#limits;
    if (this.spent > objectsMax) this.refusal = tooMuch(`${objectsMax} objects`);
    else if (Math.max(this.bytes, this.#jsonBytes) > bytesMax) {
      this.refusal = tooMuch(`${bytesMax} bytes`);
    } else if (this.#bytesHeld > uncountedBytesMax && !this.#hold()) {
      this.refusal = overloaded('Too many responses are being made or sent.');
    }
    if (this.refusal === undefined) return true;
    // The partial result is not sent, so its memory is free.
    this.release();
    return false;
  }

  get #bytesHeld(): number {
    return this.bytes + this.#jsonBytes + this.#recordBytes;
  }

  /** Grows in steps, so that the pool is not asked for each object. */
  #hold(): boolean {
    const held = (this.#held ??= this.#limits.pool.open());
    const missing = this.#bytesHeld - held.bytes;
    return missing <= 0 || held.grow(Math.max(missing, stepBytes));
  }
}

function tooMuch(limit: string): AppError {
  const message = `The request asks for more than ${limit}; ask for less at a time.`;
  return new AppError('content_too_large', message);
}
