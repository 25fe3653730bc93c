/**
 * What one request may cost, counted while it runs: objects, and the bytes of its answer. The
 * schema has a cycle (`author { posts { author …`) and texts of a mebibyte: a short query could ask
 * for millions of objects or gibibytes of text, and no limit on the query sees it.
 */

import { AppError } from '../errors.ts';
import { type MemoryPool, type Reservation, uncountedBytesMax } from '../memory-pool.ts';

/** The request asked for more than its budget. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
  /** graphql-js gives every error a place, at a cost; one that has a path is kept as it is. */
  readonly path: readonly string[] = [];
}

export interface BudgetLimits {
  readonly objectsMax: number;
  /** Of the results, and of the JSON that is made of them. */
  readonly bytesMax: number;
  /** Holds both while they are made. */
  readonly pool: Pick<MemoryPool, 'open'>;
}

/** What is taken of the pool at a time. */
const stepBytes = 65_536;

/** Of one request, batch or subscription; released by the code that made it, on every way out. */
export class Budget {
  readonly #limits: BudgetLimits;
  #held: Reservation | undefined;
  #jsonBytes = 0;
  #recordBytes = 0;
  /** One error for all: many resolvers may run into it before the execution is through. */
  #error: BudgetError | undefined;
  /** Objects that were asked for so far, also what was refused. */
  spent = 0;
  /** About what the results take in memory before they are JSON. */
  bytes = 0;
  /**
   * From the first refusal on, for good: `content_too_large` where the request asks for too much,
   * `overloaded` where all requests together hold too much.
   */
  refusal: AppError | undefined;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Takes objects, and bytes of results; false where less is left, and from then on always. */
  covers(objects: number, bytes: number): boolean {
    this.spent += objects;
    this.bytes += bytes;
    return this.#check();
  }

  /** As `covers`, but throws a BudgetError in the place of false. */
  charge(objects: number, bytes: number): void {
    if (!this.covers(objects, bytes)) throw (this.#error ??= new BudgetError());
  }

  /** Objects that may still be asked for. */
  get left(): number {
    return Math.max(0, this.#limits.objectsMax - this.spent);
  }

  /** Refuses the request for a list that has more objects than are left. Throws a BudgetError. */
  refuseList(): never {
    this.charge(this.left + 1, 0);
    throw new BudgetError();
  }

  /** Takes room for records that were read for this request alone. Throws a BudgetError. */
  holdRecords(bytes: number): void {
    this.#recordBytes += bytes;
    this.charge(0, 0);
  }

  /** As `covers`, for JSON that was made of the results. */
  coversJson(bytes: number): boolean {
    this.#jsonBytes += bytes;
    return this.#check();
  }

  /** Starts again, for the next event of a subscription. */
  renew(): void {
    this.release();
    this.spent = 0;
    this.bytes = 0;
    this.#jsonBytes = 0;
    this.#recordBytes = 0;
    this.refusal = undefined;
  }

  /** Gives back what it holds of the pool. */
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
      this.refusal = new AppError('overloaded', 'Too many answers are being made or sent.', {
        retryAfterSeconds: 1,
      });
    }
    if (this.refusal === undefined) return true;
    // Nothing of it will be sent.
    this.release();
    return false;
  }

  get #bytesHeld(): number {
    return this.bytes + this.#jsonBytes + this.#recordBytes;
  }

  /** Step by step, so that the pool is not asked for each object. */
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
