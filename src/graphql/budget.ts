/**
 * What one request, batch or event may ask for, and take while it is made. The schema has a cycle
 * (`author { posts { author …`) and texts of up to a mebibyte: a short query can ask for millions
 * of objects or gibibytes of text, and no limit on documents prevents that. These limits also bound
 * the time that an operation holds the event loop.
 *
 * 1. Records are charged when they are read, with all that will be resolved for them
 *    (`result-size.ts`): nothing is resolved first and refused then.
 * 2. A list inside an object that does not fit is null, and costs nothing (R43). What others have
 *    added to one post must not refuse a request that also asks for other posts.
 * 3. What is read is bounded as well, also for such lists: beyond that no more of them are read.
 * 4. Anything else that does not fit refuses the request. Its JSON is checked when it is made.
 *
 *     limit 2,000 objects: { allPosts { comments { id } } }, five posts: 5 * (1 + 10) = 55 objects,
 *     10 for each list, so that ten comments cost nothing more
 *     their comments: 700, 700, 1,001 (more than a list may have: null), 700 (575 fit: null), 3
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
import { createPace } from './pace.ts';
import { createShapes, lengthOf, listObjects, type Shape, textBytesOf } from './result-size.ts';

/** Limit for a result (R39), unless a quarter of the memory for all requests is less. */
const resultBytesMax = 4 * 1024 * 1024;
/** Limit for the characters of the records that were read, also of fields that are not selected. */
const readBytesMax = 16 * 1024 * 1024;
/** A copy of a record whose texts are in memory in any case. */
const copyBytes = 128;
/** Objects that go on in one iteration after a store has answered later. */
const paceObjects = 250;

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
    readBytes: Math.min(readBytesMax, share),
    /** True if the records that are charged are in memory in any case. */
    keepsObjects: store.keepsObjects,
    pool,
    pace: createPace(paceObjects),
    shapeOf: createShapes(),
  };
}

/** What one operation, batch or event has taken so far. Who creates a budget must release it. */
export class Budget {
  readonly limits: BudgetLimits;
  /** Of the connection that holds the result until its client has taken it. */
  readonly #connection: ConnectionMemory | undefined;
  #reservation: Reservation | undefined;
  /** What the results hold, as far as it is known before they are resolved. */
  readonly #held = { objects: 0, bytes: 0 };
  #jsonBytes = 0;
  /** What was read, also for lists that are null. Characters: for this request alone. */
  readonly #read = { records: 0, bytes: 0 };
  #nulls = 0;
  #lastNull: Error | undefined;
  /**
   * Set beyond the limits and at the end, and permanent: a RequestError if the request asks for too
   * much, `overloaded` if all requests together hold too much.
   */
  #refusal: Error | undefined;

  constructor(limits: BudgetLimits, connection: ConnectionMemory | undefined) {
    this.limits = limits;
    this.#connection = connection;
  }

  /** Charges an object with all that is resolved for it. Throws beyond the limits, from then on. */
  chargeObject(info: GraphQLResolveInfo): void {
    const { objects, bytes } = this.limits.shapeOf(info);
    this.#charge(info, objects, bytes);
  }

  /** Charges the texts of an object that was read, and returns it. Throws as `chargeObject`. */
  chargeTexts<T extends object | undefined>(record: T, info: GraphQLResolveInfo): T {
    if (record === undefined) return record;
    this.countRead([record], info);
    this.#charge(info, 0, this.#textBytesOf([record], this.limits.shapeOf(info)));
    return record;
  }

  /** Charges the records of a list. Throws, and charges nothing, if the list does not fit. */
  chargeRecords(records: readonly object[], info: GraphQLResolveInfo): void {
    const shape = this.limits.shapeOf(info);
    const objects = Math.max(0, records.length * shape.objects - chargedBefore(info));
    this.#charge(info, objects, records.length * shape.bytes + this.#textBytesOf(records, shape));
  }

  /** Charges the JSON of a result. Throws as `chargeObject` does. */
  chargeJson(bytes: number): void {
    this.#jsonBytes += bytes;
    this.#reserve();
    if (this.#jsonBytes > this.limits.bytes) throw this.#refuse(tooMuch(this.limits));
  }

  /** Throws if the request was refused. */
  check(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /** The records that a list may still have. */
  recordsLeft(info: GraphQLResolveInfo): number {
    const left = this.limits.objects - this.#held.objects + chargedBefore(info);
    return Math.max(0, Math.floor(left / this.limits.shapeOf(info).objects));
  }

  /** Counts records that were read, or copied. Throws if that is more than may be read. */
  countRead(records: readonly object[], info: GraphQLResolveInfo, areCopies = false): void {
    this.#read.records += records.length;
    if (!this.limits.keepsObjects) this.#read.bytes += lengthOf(records);
    else if (areCopies) this.#read.bytes += copyBytes * records.length;
    this.#reserve();
    this.checkRead(info);
  }

  /** Throws if no more may be read, and if the request was refused. */
  checkRead(info: GraphQLResolveInfo): void {
    this.check();
    const { objects, readBytes } = this.limits;
    if (this.#read.records > 2 * objects || this.#read.bytes > readBytes) throw this.refuse(info);
  }

  /** Returns the error for what does not fit: of a list inside an object, or of the request. */
  refuse({ path, fieldNodes }: GraphQLResolveInfo): Error {
    if (path.prev === undefined) return this.#refuse(tooMuch(this.limits));
    this.#nulls += 1;
    // A result shows `errorsMax` errors, and to make one takes as long as to read a list.
    if (this.#lastNull !== undefined && this.#nulls > errorsMax) return this.#lastNull;
    const message =
      `The list has more than ${nestedRecordsMax} records, or does not fit into the result; ask ` +
      'for less of it, with `first` and `after`.';
    const originalError = new AppError('content_too_large', message);
    const options = { nodes: fieldNodes, path: responsePathAsArray(path), originalError };
    return (this.#lastNull = new GraphQLError(message, options));
  }

  /** Returns the memory of the budget to the pool. Nothing can be charged after that. */
  release(): void {
    this.#refusal ??= ended;
    this.#reservation?.release();
    this.#reservation = undefined;
  }

  #charge(info: GraphQLResolveInfo, objects: number, bytes: number): void {
    const { limits } = this;
    const held = { objects: this.#held.objects + objects, bytes: this.#held.bytes + bytes };
    if (held.objects > limits.objects || held.bytes > limits.bytes) throw this.refuse(info);
    Object.assign(this.#held, held);
    this.#reserve();
  }

  #textBytesOf(records: readonly object[], shape: Shape): number {
    return textBytesOf(records, shape, this.limits.bytes - this.#held.bytes);
  }

  /** Takes memory from the pool. Throws if there is none, and if the request was refused. */
  #reserve(): void {
    this.check();
    const memory = this.#held.bytes + this.#read.bytes + this.#jsonBytes;
    if (memory <= uncountedBytesMax) return;
    this.#reservation ??= this.limits.pool?.open(this.#connection);
    if (this.#reservation?.grow(memory - this.#reservation.bytes) === false) {
      throw this.#refuse(overloaded('Too many responses are being made or sent.'));
    }
  }

  /** Refuses the request. Returns the error. */
  #refuse(error: Error): Error {
    // graphql-js locates every error that a resolver throws, which is slow, except one that has a
    // path already. The result, with these errors, is dropped.
    this.#refusal ??= Object.assign(error, { path: [] });
    // The partial result is not sent, so its memory is free.
    this.release();
    return this.#refusal;
  }
}

/** What was charged for a list with the object that has it. */
function chargedBefore({ path }: GraphQLResolveInfo): number {
  return path.prev === undefined ? 0 : listObjects;
}

/**
 * For what a store answers when the operation has ended: nobody gets it. One for all: its stack
 * would take a twelfth of `createPost`.
 */
const ended = new Error('The operation has ended.');

/** The records of a list inside an object that is asked for without `first` (R43). */
export const nestedRecordsMax = 1_000;

function tooMuch({ objects, bytes, readBytes }: BudgetLimits): RequestError {
  const message =
    `The request asks for more than ${objects} objects, ${bytes} bytes, or ${readBytes} bytes ` +
    'of records; ask for less at a time, with `first` and `after`.';
  return new RequestError([toRefusal(new AppError('content_too_large', message))]);
}
