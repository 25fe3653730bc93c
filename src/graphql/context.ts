/**
 * What the resolvers of one request, batch or event use, and what limits them. The schema has a
 * cycle (`author { posts { author …`) and texts of up to a mebibyte: a short query can ask for
 * millions of objects or gibibytes of text, and no limit on documents prevents that. These limits
 * also bound the time that an operation holds the event loop.
 *
 * A list inside an object that does not fit is null, with an error in its place (R43): what others
 * have added to one post must not refuse a request that also asks for other posts. Anything else
 * that does not fit refuses the request.
 */

import { GraphQLError, type GraphQLResolveInfo, responsePathAsArray } from 'graphql';
import type { Access } from '../auth/access.ts';
import type { AddComment, Topic } from '../domain/comments.ts';
import { AppError, overloaded } from '../errors.ts';
import type { Log } from '../log.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import { type ConnectionMemory, type Reservation, uncountedBytesMax } from '../memory-pool.ts';
import type { List, Page, Range, Records, Store } from '../store/store.ts';
import type { Account, Comment } from '../store/model.ts';
import { errorsMax } from './errors.ts';
import { type ContextLimits, hasEnded, tooMuch } from './context-limits.ts';
import { addLengths, createGate, type Gate, Portion, type Selection } from './weight.ts';

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

/** The pool is asked for this many bytes at a time. */
const stepBytes = 65_536;

/** Lists inside objects leave a tenth of a result to what is read later and cannot be null. */
const nestedShare = 0.9;
/** Lists that are dropped: each is an error … */
const droppedMax = 1_000;
/** … and what was read for them, times a limit. */
const droppedTimes = 3;
/** To count a record takes this part of the time of reading it. */
const countedShare = 0.05;
/** Records of a list that are read first, if no limit is given. */
const firstRecords = 500;
/** Lists that are read at the same time: one statement on PostgreSQL reads a hundred. */
const listsAtOnce = 200;

/** Objects of an operation that needs no place to go on when its store answers later. */
const smallObjectsMax = 250;

/** The code that creates it must release it. */
export class RequestContext {
  readonly deps: ContextDeps;
  readonly facts: RequestFacts;
  readonly records: Records;
  readonly #limits: ContextLimits;
  #reservation: Reservation | undefined;
  /** Records of lists that the store answered later. */
  #arrived = 0;
  /** Settles when the operation may go on; undefined while it is small. */
  #place: Promise<void> | undefined;
  /** What the results hold. */
  readonly #held = new Portion();
  /** Lists that did not fit, and what was read for them. */
  readonly #dropped = { lists: 0, objects: 0, bytes: 0 };
  #jsonBytes = 0;
  /** Records that were read for this request alone, also for lists that did not fit. */
  #recordBytes = 0;
  /** Of results, lists that are being read, records and JSON; approximate. */
  #memory = 0;
  #isExecuting = false;
  #hasEnded = false;
  #readInTurn: Gate | undefined;
  /** One list of several pages at a time, so that each knows what room there is. */
  #readLong: Gate | undefined;
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
    this.charge(1, this.#limits.shapeOf(selection).bytes);
  }

  /** Charges the selected texts of a record, and returns it. Throws as `charge` does. */
  chargeTexts<T extends object | undefined>(record: T, selection: Selection): T {
    if (record !== undefined) this.#check(this.#addTexts(this.#held, [record], selection));
    return record;
  }

  /**
   * Returns the records of a range: as many as its limit, or all that there are. Charges them and
   * their selected fields. Throws, or rejects, as `charge` does; for a list inside an object that
   * does not fit, with an error of its own, and nothing is charged.
   */
  readList<T extends object>(
    list: List<T>,
    info: GraphQLResolveInfo,
    { after, limit = Number.POSITIVE_INFINITY }: Range = {},
  ): MaybePromise<readonly T[]> {
    const portion = new Portion();
    const share = info.path.prev === undefined ? 1 : nestedShare;
    const take = (page: Page<T>, earlier: readonly T[] = []): MaybePromise<readonly T[]> => {
      const missing = limit - earlier.length;
      const records = page.records.length > missing ? page.records.slice(0, missing) : page.records;
      const bytes = records.length * this.#limits.shapeOf(info).bytes;
      portion.add(records.length, bytes);
      this.#take(bytes + this.#addTexts(portion, records, info));
      if (!this.#hasRoom(share, portion)) throw this.#drop(portion, info);
      const all = earlier.length === 0 ? records : [...earlier, ...records];
      const { next } = page;
      // The store ends a page early if its records are long.
      if (next === undefined || all.length >= limit) {
        this.#held.addPortion(portion);
        return all;
      }
      const readOn = (): MaybePromise<readonly T[]> =>
        andThen(next(), (following) => take(following, all));
      if (earlier.length > 0) return readOn();
      return (this.#readLong ??= createGate(1))(() => checkLength(readOn));
    };
    /** So that a list which is too long is not read to learn that. */
    const checkLength = (readOn: () => MaybePromise<readonly T[]>) => {
      const room = this.#objectsLeft(share);
      if (limit <= room) return readOn();
      this.#dropped.objects += room * countedShare;
      return andThen(list.exceeds(room, after), (exceeds) => {
        if (exceeds) throw this.#drop(portion, info);
        return readOn();
      });
    };
    const readFirst = (): MaybePromise<readonly T[]> => {
      // One more than there is room for tells that the list does not fit.
      const most = this.#objectsLeft(share) + 1;
      const first = Math.min(limit === Infinity ? firstRecords : limit, most);
      const read = list.read({ after, limit: first });
      return isPromise(read) ? read.then((page) => this.#goOn(page, take)) : take(read);
    };
    if (this.deps.store.keepsObjects) return readFirst();
    return (this.#readInTurn ??= createGate(listsAtOnce))(readFirst);
  }

  /**
   * A store that answers later answers many operations at once. They would all go on in one call
   * of the event loop, so that those with many objects need a place to do so.
   */
  #goOn<T>(page: Page<T>, take: (page: Page<T>) => MaybePromise<readonly T[]>) {
    if (!this.#isExecuting) throw hasEnded();
    this.#arrived += page.records.length;
    if (this.#arrived <= smallObjectsMax) return take(page);
    this.#place ??= this.#limits.places.take();
    return this.#place.then(() => take(page));
  }

  beginExecution(): void {
    this.#isExecuting = true;
  }

  /**
   * Call it when the operation was executed: another large one may go on. What the store answers
   * after that, because another field has failed before, is dropped.
   */
  endExecution(): void {
    this.#isExecuting = false;
    void this.#place?.then(this.#limits.places.leave);
    this.#place = undefined;
  }

  /** Returns its memory to the pool. Nothing can be charged after that. */
  release(): void {
    this.#hasEnded = true;
    this.#reservation?.release();
    this.#reservation = undefined;
  }

  /** The objects for which there is room. Throws as `charge` does. */
  #objectsLeft(share: number): number {
    this.#take(0);
    return Math.max(0, Math.floor(this.#limits.objects * share) - this.#held.objects);
  }

  /** True if the results have room for this too. Texts are measured if that decides it. */
  #hasRoom(share: number, portion?: Portion): boolean {
    const { objects, bytes } = this.#limits;
    if (this.#held.objects + (portion?.objects ?? 0) > objects * share) return false;
    // Of a list that can be dropped, no more is kept in memory than of a whole result.
    if (share < 1 && portion !== undefined && portion.recordBytes > bytes) return false;
    if (this.#held.bytesMax + (portion?.bytesMax ?? 0) <= bytes * share) return true;
    const held = this.#held.measure();
    return held + (portion?.measure(bytes * share - held) ?? 0) <= bytes * share;
  }

  /** Adds the selected texts of records. Returns the memory that they take. */
  #addTexts(portion: Portion, records: readonly object[], selection: Selection): number {
    const before = portion.memory;
    portion.addTexts(records, this.#limits.shapeOf(selection));
    // A store that creates records anew for each read does so for this request alone.
    const recordBytes = this.deps.store.keepsObjects ? 0 : records.reduce(addLengths, 0);
    portion.recordBytes += recordBytes;
    portion.memory += recordBytes;
    this.#recordBytes += recordBytes;
    return portion.memory - before;
  }

  /** Counts memory, and throws beyond the limits, and from then on. */
  #take(bytes: number): void {
    this.#memory += bytes;
    if (this.#refusal !== undefined) throw this.#refusal;
    if (this.#hasEnded) throw hasEnded();
    const { recordBytes } = this.#limits;
    if (this.#recordBytes > recordBytes) throw this.#refuse(tooMuch(this.#limits));
    if (this.#memory > uncountedBytesMax && !this.#reserve(this.#memory)) {
      throw this.#refuse(overloaded('Too many responses are being made or sent.'));
    }
  }

  #check(bytes: number): void {
    this.#take(bytes);
    if (this.#hasRoom(1) && this.#jsonBytes <= this.#limits.bytes) return;
    throw this.#refuse(tooMuch(this.#limits));
  }

  /** Returns the error for a list that does not fit. */
  #drop(portion: Portion, { path, fieldNodes }: GraphQLResolveInfo): Error {
    const { objects, bytes } = this.#limits;
    const dropped = this.#dropped;
    dropped.lists += 1;
    dropped.objects += portion.objects;
    dropped.bytes += portion.bytes;
    const isMuch =
      dropped.lists > droppedMax ||
      dropped.objects > droppedTimes * objects ||
      dropped.bytes > droppedTimes * bytes;
    if (path.prev === undefined || isMuch) return this.#refuse(tooMuch(this.#limits));
    this.#memory -= portion.memory;
    this.#reservation?.set(Math.min(this.#reservation.bytes, this.#memory));
    const message =
      'The list does not fit into the result; ask for less of it, with `first` and `after`.';
    const originalError = new AppError('content_too_large', message);
    // Only so many errors are told, and to find the place of one takes long.
    const nodes = dropped.lists <= errorsMax ? fieldNodes : [];
    return new GraphQLError(message, { nodes, path: responsePathAsArray(path), originalError });
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

  #reserve(bytes: number): boolean {
    const { pool } = this.#limits;
    if (pool === undefined) return true;
    this.#reservation ??= pool.open(this.facts.memory);
    const missing = bytes - this.#reservation.bytes;
    return missing <= 0 || this.#reservation.grow(Math.max(missing, stepBytes));
  }
}
