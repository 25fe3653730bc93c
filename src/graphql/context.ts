/**
 * What the resolvers of one request, batch or event use, and what limits them. The schema has a
 * cycle (`author { posts { author …`) and texts of up to a mebibyte: a short query can ask for
 * millions of objects or gibibytes of text, and no limit on documents prevents that. These limits
 * also bound the time that an operation holds the event loop.
 */

import type { FieldNode, GraphQLResolveInfo } from 'graphql';
import type { Access } from '../auth/access.ts';
import type { Config } from '../config.ts';
import type { AddComment, Topic } from '../domain/comments.ts';
import { AppError, overloaded } from '../errors.ts';
import type { Log } from '../log.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import {
  type ConnectionMemory,
  type MemoryPool,
  type Reservation,
  uncountedBytesMax,
} from '../memory-pool.ts';
import type { List, Page, Range, Records, Store } from '../store/store.ts';
import type { Account, Comment } from '../store/model.ts';
import { collectFields } from './documents/limits.ts';
import { RequestError, toRefusal } from './errors.ts';

/** Dependencies that all operations share. */
export interface ContextDeps extends Pick<Access, 'writesNeedToken' | 'readsNeedToken'> {
  readonly store: Store;
  /** Stores a comment, then publishes it. */
  readonly addComment: AddComment;
  /** The published comments, for the subscription. */
  readonly commentAdded: Pick<Topic<Comment>, 'subscribe'>;
  readonly log: Log;
}

/** What a transport knows of a request. */
export interface RequestFacts {
  readonly requestId: string;
  /** The account of the request's token; undefined without one. Throws `invalid_token`. */
  readonly viewer: () => MaybePromise<Account | undefined>;
  /** Where the records of a cacheable response are read; default: the store. */
  readonly records?: Records;
  /** Of the connection that holds the result until its client has taken it. */
  readonly memory?: ConnectionMemory;
  /** True for GET, which must not change anything (RFC 9110 §9.2.1). */
  readonly readsOnly?: boolean;
}

/** A result at most (R39), unless a quarter of the memory for all requests is less. */
const resultBytesMax = 4 * 1024 * 1024;
/** Records of a result that asks for few of their fields. */
const recordBytesMax = 16 * 1024 * 1024;
/** Approximate memory of a field in a result, without a long text, in bytes. */
const fieldBytes = 48;
/** The pool is asked for this many bytes at a time. */
const stepBytes = 65_536;

export type ContextLimits = ReturnType<typeof createContextLimits>;

/** `pool` reserves the memory of a result in use. Absent for events: only one is made at a time. */
export function createContextLimits(
  { graphqlObjectsMax, waitingBytesMax }: Pick<Config, 'graphqlObjectsMax' | 'waitingBytesMax'>,
  pool?: MemoryPool,
) {
  const share = Math.floor(waitingBytesMax / 4);
  return {
    objects: graphqlObjectsMax,
    /** For the results, and for their JSON. */
    bytes: Math.min(resultBytesMax, share),
    /** For records that were read for this request alone. */
    recordBytes: Math.min(recordBytesMax, share),
    pool,
    /** The fields of selections: cached, because documents are cached and run again. */
    fieldCounts: new WeakMap<FieldNode, number>(),
  };
}

/** The code that creates it must release it. */
export class RequestContext {
  readonly deps: ContextDeps;
  readonly facts: RequestFacts;
  readonly records: Records;
  readonly #limits: ContextLimits;
  #reservation: Reservation | undefined;
  /** Objects requested so far, including refused ones. */
  #objects = 0;
  /** Approximate memory of the results before they become JSON. */
  #bytes = 0;
  #jsonBytes = 0;
  #recordBytes = 0;
  /**
   * Set beyond the limits, and permanent: a RequestError if the request asks for too much,
   * `overloaded` if all requests together hold too much.
   */
  #refusal: Error | undefined;

  constructor(deps: ContextDeps, facts: RequestFacts, limits: ContextLimits) {
    this.deps = deps;
    this.facts = facts;
    this.records = facts.records ?? deps.store;
    this.#limits = limits;
  }

  /** Charges objects and bytes of results. Throws beyond the limits, and from then on. */
  charge(objects: number, bytes: number): void {
    this.#objects += objects;
    this.#bytes += bytes;
    this.#check();
  }

  /** Charges the JSON of a result. Throws as `charge` does. */
  chargeJson(bytes: number): void {
    this.#jsonBytes += bytes;
    this.#check();
  }

  /** Charges one object and its selected fields. Throws as `charge` does. */
  chargeObject(selection: Selection): void {
    this.charge(1, this.#bytesOf(selection));
  }

  /** Charges a text, and returns it. Throws as `charge` does. */
  chargeText(text: string): string {
    // A short text is included in `fieldBytes`.
    if (text.length > fieldBytes) this.charge(0, text.length);
    return text;
  }

  /**
   * Returns the records of a range: as many as its limit, or all that there are. Charges them and
   * their selected fields. Throws, or rejects, as `charge` does.
   */
  readList<T>(list: List<T>, selection: Selection, range: Range = {}): MaybePromise<readonly T[]> {
    // Nothing more is read.
    if (this.#refusal !== undefined) throw this.#refusal;
    const { limit = Number.POSITIVE_INFINITY } = range;
    const bytesEach = this.#bytesOf(selection);
    const readOn = (page: Page<T>, earlier: readonly T[] = []): MaybePromise<readonly T[]> => {
      const room = limit - earlier.length;
      const records = page.records.length > room ? page.records.slice(0, room) : page.records;
      // A store that creates records anew for each read does so for this request alone.
      if (!this.deps.store.keepsObjects) this.#recordBytes += records.reduce(addLengths, 0);
      this.charge(records.length, records.length * bytesEach);
      const all = earlier.length === 0 ? records : [...earlier, ...records];
      // The store ends a page early if its records are long.
      if (page.next === undefined || all.length >= limit) return all;
      return andThen(page.next(), (next) => readOn(next, all));
    };
    return andThen(list.read(range), readOn);
  }

  /** Returns its memory to the pool. */
  release(): void {
    this.#reservation?.release();
    this.#reservation = undefined;
  }

  /** Estimates the memory of one object by its selected fields, including those of fragments. */
  #bytesOf({ fieldNodes, fragments }: Selection): number {
    const { fieldCounts } = this.#limits;
    let fields = 0;
    for (const node of fieldNodes) {
      let count = fieldCounts.get(node);
      if (count === undefined) {
        count = collectFields(node.selectionSet ? [node.selectionSet] : [], fragments).size;
        fieldCounts.set(node, count);
      }
      fields += count;
    }
    return fields * fieldBytes;
  }

  #check(): void {
    this.#refusal ??= this.#findRefusal();
    if (this.#refusal === undefined) return;
    // The partial result is not sent, so its memory is free.
    this.release();
    throw this.#refusal;
  }

  #findRefusal(): Error | undefined {
    const { objects, bytes, recordBytes } = this.#limits;
    if (this.#recordBytes > recordBytes) return tooMuch(`${recordBytes} bytes of records`);
    if (this.#objects > objects) return tooMuch(`${objects} objects`);
    if (this.#bytes > bytes || this.#jsonBytes > bytes) return tooMuch(`${bytes} bytes`);
    const used = this.#bytes + this.#jsonBytes + this.#recordBytes;
    if (used <= uncountedBytesMax || this.#reserve(used)) return undefined;
    return located(overloaded('Too many responses are being made or sent.'));
  }

  #reserve(bytes: number): boolean {
    const { pool } = this.#limits;
    if (pool === undefined) return true;
    this.#reservation ??= pool.open(this.facts.memory);
    const missing = bytes - this.#reservation.bytes;
    return missing <= 0 || this.#reservation.grow(Math.max(missing, stepBytes));
  }
}

/**
 * graphql-js locates every error that a resolver throws, which is slow, except one that has a path
 * already. The result, with these errors, is dropped.
 */
function located(error: Error): Error {
  return Object.assign(error, { path: [] });
}

function tooMuch(limit: string): Error {
  const message =
    `The request asks for more than ${limit}; ` +
    'ask for less at a time, with `first` and `after`.';
  return located(new RequestError([toRefusal(new AppError('content_too_large', message))]));
}

/** Adds the length of the texts of a record to `sum`. */
function addLengths(sum: number, record: unknown): number {
  const values = record as Readonly<Record<string, unknown>>; // every record is an object
  let length = sum;
  for (const name in values) {
    if (typeof values[name] === 'string') length += values[name].length;
  }
  return length;
}

/** The part of a resolver's `info` that describes its selection. */
type Selection = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments'>;
