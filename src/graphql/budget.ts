/**
 * What one request, batch or event may ask for, and take while it is made. The schema has a cycle
 * (`author { posts { author …`) and texts of up to a mebibyte: a short query can ask for millions
 * of objects or gibibytes of text, and no limit on documents prevents that. These limits also bound
 * the time that an operation holds the event loop.
 *
 * 1. Objects, fields and texts are charged before they become part of the result.
 * 2. A list inside an object that does not fit is dropped: it is null, with an error in its place
 *    (R43). What others have added to one post must not refuse a request that also asks for other
 *    posts. Its size is not charged, but counts as dropped.
 * 3. Anything else that does not fit refuses the request, and so does too much that is dropped.
 * 4. Lists inside objects get nine tenths of a result: the rest is for what cannot be null.
 *
 *     limit 2,000 objects: { allPosts { comments { id } author { id } } }, five posts
 *     5 posts, and the comments of three: 8 objects; those of the fourth are 4,000: null
 *     the comment of the fifth, five authors: 14 objects, which fit
 */

import { GraphQLError, type GraphQLResolveInfo, responsePathAsArray } from 'graphql';
import type { Config } from '../config.ts';
import { AppError, overloaded } from '../errors.ts';
import {
  type ConnectionMemory,
  type MemoryPool,
  type Reservation,
  uncountedBytesMax,
} from '../memory-pool.ts';
import type { Store } from '../store/store.ts';
import { errorsMax, RequestError, toRefusal } from './errors.ts';
import { createPermits } from './permits.ts';
import { createShapes, lengthOf, ResultSize, type Selection } from './result-size.ts';

/** Limit for a result (R39), unless a quarter of the memory for all requests is less. */
const resultBytesMax = 4 * 1024 * 1024;
/** Limit for the bytes of the records that were read for a result with few of their fields. */
const recordBytesMax = 16 * 1024 * 1024;
/** The share of a result for lists inside objects. */
const nestedShare = 0.9;
/** Operations with more than 250 records that may go on at the same time (see `permits.ts`). */
const largeMax = 4;
/** Limit for lists that are dropped, because each is an error … */
const droppedMax = 1_000;
/** … and for what was read for these lists: this many times a whole result. */
const droppedResultsMax = 3;

export type BudgetLimits = ReturnType<typeof createBudgetLimits>;

interface BudgetDeps {
  readonly config: Pick<Config, 'graphqlObjectsMax' | 'requestMemoryBytesMax'>;
  readonly store: Pick<Store, 'keepsObjects'>;
}

/** `pool` reserves the memory of a result in use. Events, made one at a time, need none. */
export function createBudgetLimits({ config, store }: BudgetDeps, pool?: MemoryPool) {
  const share = Math.floor(config.requestMemoryBytesMax / 4);
  return {
    objects: config.graphqlObjectsMax,
    /** For the results, and for their JSON. */
    bytes: Math.min(resultBytesMax, share),
    /** For records that were read for this request alone. */
    recordBytes: Math.min(recordBytesMax, share),
    /** True if the records that are charged are in memory in any case. */
    keepsObjects: store.keepsObjects,
    pool,
    permits: createPermits(largeMax),
    shapeOf: createShapes(),
  };
}

/** What one operation, batch or event has taken so far. Who creates a budget must release it. */
export class Budget {
  readonly limits: BudgetLimits;
  /** Of the connection that holds the result until its client has taken it. */
  readonly #connection: ConnectionMemory | undefined;
  #reservation: Reservation | undefined;
  /** What the results hold. */
  readonly #held = new ResultSize();
  #droppedLists = 0;
  /** What was read for the dropped lists, in whole results. */
  #droppedResults = 0;
  #jsonBytes = 0;
  /** Records that were read for this request alone, also for lists that were dropped. */
  #recordBytes = 0;
  /** Of results, lists that are being read, records and JSON; approximate. */
  #memory = 0;
  #isReleased = false;
  /**
   * Set beyond the limits, and permanent: a RequestError if the request asks for too much,
   * `overloaded` if all requests together hold too much.
   */
  #refusal: Error | undefined;

  constructor(limits: BudgetLimits, connection: ConnectionMemory | undefined) {
    this.limits = limits;
    this.#connection = connection;
  }

  /** Charges objects and bytes of results. Throws beyond the limits, and from then on. */
  charge(objects: number, bytes: number): void {
    this.#held.add(objects, bytes);
    this.#check(bytes);
  }

  /** Charges the JSON of a result. Throws as `charge` does. */
  chargeJson(bytes: number): void {
    this.#jsonBytes += bytes;
    this.#check(bytes);
  }

  /** Charges one object and its selected fields. Throws as `charge` does. */
  chargeObject(selection: Selection): void {
    this.charge(1, this.limits.shapeOf(selection).bytes);
  }

  /** Charges the selected texts of a record, and returns it. Throws as `charge` does. */
  chargeTexts<T extends object | undefined>(record: T, selection: Selection): T {
    if (record === undefined) return record;
    const length = this.#held.addTexts([record], this.limits.shapeOf(selection));
    this.#check(length + this.#addRecords([record]));
    return record;
  }

  /** Adds records to a list that is being read. Throws `drop`, and beyond the limits. */
  addTo(size: ResultSize, records: readonly object[], info: GraphQLResolveInfo): void {
    const shape = this.limits.shapeOf(info);
    const recordBytes = this.#addRecords(records);
    const memory = size.addRecords(records, shape) + recordBytes;
    size.recordBytes += recordBytes;
    size.memory += memory;
    this.#take(memory);
    if (!this.#fits(shareOf(info), size)) throw this.drop(size, info);
  }

  /** Makes a list that was read part of the result. */
  keep(size: ResultSize): void {
    this.#held.addSize(size);
  }

  /** The objects that a list may still have. Throws as `charge` does. */
  objectsLeft(info: GraphQLResolveInfo): number {
    this.#take(0);
    return Math.max(0, Math.floor(this.limits.objects * shareOf(info)) - this.#held.objects);
  }

  /** Counts what was read, or only counted, for a list that is dropped. */
  countDropped(objects: number, bytes = 0): void {
    const { limits } = this;
    this.#droppedResults += Math.max(objects / limits.objects, bytes / limits.bytes);
  }

  /** Returns the error for a list that does not fit. Its records are counted as dropped. */
  drop(size: ResultSize, { path, fieldNodes }: GraphQLResolveInfo): Error {
    this.#droppedLists += 1;
    this.countDropped(size.objects, size.bytes);
    const isMuch = this.#droppedLists > droppedMax || this.#droppedResults > droppedResultsMax;
    if (path.prev === undefined || isMuch) return this.#refuse(tooMuch(this.limits));
    this.#memory -= size.memory;
    this.#reservation?.set(this.#memory);
    const message =
      'The list does not fit into the result; ask for less of it, with `first` and `after`.';
    const originalError = new AppError('content_too_large', message);
    // A result has at most `errorsMax` errors, and locating an error takes long.
    const nodes = this.#droppedLists <= errorsMax ? fieldNodes : [];
    return new GraphQLError(message, { nodes, path: responsePathAsArray(path), originalError });
  }

  /** Returns the memory of the budget to the pool. Nothing can be charged after that. */
  release(): void {
    this.#isReleased = true;
    this.#reservation?.release();
    this.#reservation = undefined;
  }

  /** Adds records that a store made for this read alone. Returns their memory. */
  #addRecords(records: readonly object[]): number {
    const bytes = this.limits.keepsObjects ? 0 : lengthOf(records);
    this.#recordBytes += bytes;
    return bytes;
  }

  /** True if the results have room for this too. Texts are measured if that decides it. */
  #fits(share: number, size?: ResultSize): boolean {
    const { objects, bytes } = this.limits;
    if (this.#held.objects + (size?.objects ?? 0) > objects * share) return false;
    // Of a list that can be dropped, no more is kept in memory than of a whole result.
    if (share < 1 && size !== undefined && size.recordBytes > bytes) return false;
    if (this.#held.bytesMax + (size?.bytesMax ?? 0) <= bytes * share) return true;
    const held = this.#held.measure();
    return held + (size?.measure(bytes * share - held) ?? 0) <= bytes * share;
  }

  #check(bytes: number): void {
    this.#take(bytes);
    if (this.#fits(1) && this.#jsonBytes <= this.limits.bytes) return;
    throw this.#refuse(tooMuch(this.limits));
  }

  /** Counts memory, and throws beyond the limits, and from then on. */
  #take(bytes: number): void {
    this.#memory += bytes;
    if (this.#refusal !== undefined) throw this.#refusal;
    // What a store answers when the operation has ended: nobody gets the error.
    if (this.#isReleased) throw new Error('The operation has ended.');
    if (this.#recordBytes > this.limits.recordBytes) throw this.#refuse(tooMuch(this.limits));
    if (this.#memory <= uncountedBytesMax) return;
    this.#reservation ??= this.limits.pool?.open(this.#connection);
    if (this.#reservation?.grow(this.#memory - this.#reservation.bytes) === false) {
      throw this.#refuse(overloaded('Too many responses are being made or sent.'));
    }
  }

  /** Refuses the request. Returns the error. */
  #refuse(error: Error): Error {
    // graphql-js locates every error that a resolver throws, which is slow, except one that has a
    // path already. The result, with these errors, is dropped.
    this.#refusal = Object.assign(error, { path: [] });
    // The partial result is not sent, so its memory is free.
    this.release();
    return error;
  }
}

function shareOf({ path }: GraphQLResolveInfo): number {
  return path.prev === undefined ? 1 : nestedShare;
}

function tooMuch({ objects, bytes, recordBytes }: BudgetLimits): RequestError {
  const message =
    `The request asks for more than ${objects} objects, ${bytes} bytes, or ${recordBytes} bytes ` +
    'of records; ask for less at a time, with `first` and `after`.';
  return new RequestError([toRefusal(new AppError('content_too_large', message))]);
}
