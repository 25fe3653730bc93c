/**
 * What the resolvers of one request, batch or event use. It reads lists:
 *
 * 1. The first page has at most 500 records, and one more than fit into the result.
 * 2. A longer list with a limit that does not fit is not read on if the store says that it has
 *    more records than fit.
 * 3. Otherwise its pages are read one after the other, and those of one long list at a time, so
 *    that each knows how much is left.
 *
 * A store that answers later answers many operations at once: at most 200 lists are read at the
 * same time, and an operation with more than 250 records needs a permit to go on (`permits.ts`).
 */

import type { GraphQLResolveInfo } from 'graphql';
import type { Access } from '../auth/access.ts';
import type { AddComment, Topic } from '../domain/comments.ts';
import { type Reader, type Records, toReader } from '../domain/readers.ts';
import type { Log } from '../log.ts';
import { AppError } from '../errors.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { ConnectionMemory } from '../memory-pool.ts';
import type { Account, Comment } from '../store/model.ts';
import { TrackedRecords } from '../records/tracked-records.ts';
import type { List, Page, Range, Store } from '../store/store.ts';
import { Budget, type BudgetLimits } from './budget.ts';
import type { GraphqlRequest } from './documents/documents.ts';
import { KeyedWrites } from './once.ts';
import { createGate, type Gate } from './permits.ts';
import { ResultSize } from './result-size.ts';

/** Dependencies that all operations share. */
export interface ContextDeps extends Pick<
  Access,
  'writesNeedToken' | 'hasOwners' | 'readsNeedToken'
> {
  readonly store: Store;
  /** Stores a comment, then publishes it. */
  readonly addComment: AddComment;
  /** The published comments, for the subscription. */
  readonly commentAdded: Pick<Topic<Comment>, 'subscribe' | 'position'>;
  readonly log: Log;
}

/** What a transport knows of a request. */
export interface RequestFacts {
  readonly requestId: string;
  /** The account of the request's token; undefined without one. Throws `invalid_token`. */
  readonly viewer: () => MaybePromise<Account | undefined>;
  /** The records of a cacheable response, which are those of the viewer. */
  readonly records?: Records;
  /** Of the connection that holds the result until its client has taken it. */
  readonly memory?: ConnectionMemory;
}

/** What an operation needs of its viewer, and who asks. */
export function createIdentity({ hasOwners, readsNeedToken }: ContextDeps) {
  const checkAccount = (account: Account | undefined): Account | undefined => {
    if (account !== undefined || !readsNeedToken) return account;
    throw new AppError('missing_token', 'This operation needs a bearer token.');
  };
  return {
    /** The account, if posts have owners (R36); throws, or rejects, without the token it needs. */
    authorize: (viewer: RequestFacts['viewer']): MaybePromise<Account | undefined> =>
      hasOwners ? andThen(viewer(), checkAccount) : undefined,
    /** Who asks, by the account of its token; undefined if everybody reads everything. */
    readerOf: (account?: Account): Reader | undefined =>
      hasOwners ? toReader(account) : undefined,
  };
}

/** To count a record takes this part of the time of reading it. */
const countedShare = 0.05;
/** Records of a list that are read first, if no limit is given. */
const firstRecords = 500;
/** Lists that are read at the same time: one statement on PostgreSQL reads a hundred. */
const listsAtOnce = 200;
/** Records of an operation that needs no permit to go on. */
const smallRecordsMax = 250;

/** A list while it is read. */
interface ListReading<T> {
  readonly list: List<T>;
  readonly info: GraphQLResolveInfo;
  readonly after: Range['after'];
  readonly limit: number;
  readonly size: ResultSize;
  records: readonly T[];
}

/** The code that creates it must release it. */
export class RequestContext extends Budget {
  readonly deps: ContextDeps;
  readonly facts: RequestFacts;
  /** Who asks, if posts have owners: nobody until the operation is executed. */
  reader: Reader | undefined;
  /** The name of the account of a mutation, once its token was checked. */
  account: string | undefined;
  /** The result depends on who asks. */
  isPersonal = false;
  /** Undefined until an operation has a key (R40). */
  writes: KeyedWrites | undefined;
  /** Records of lists that the store answered later. */
  #arrived = 0;
  /** Settles when the operation may go on; undefined while it is small. */
  #permit: Promise<void> | undefined;
  #isExecuting = false;
  #records: Records | undefined;
  #lists: Gate | undefined;
  #longLists: Gate | undefined;

  constructor(deps: ContextDeps, facts: RequestFacts, limits: BudgetLimits) {
    super(limits, facts.memory);
    this.deps = deps;
    this.facts = facts;
    if (deps.hasOwners) this.reader = toReader(undefined); // reads what is published
    this.#records = facts.records;
  }

  /** All that resolvers read. */
  get records(): Records {
    return (this.#records ??= new TrackedRecords(this.deps.store, { reader: this.reader }));
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
    const reading = { list, info, after, limit, size: new ResultSize(), records: [] };
    if (this.limits.keepsObjects) return this.#readFirst(reading);
    return (this.#lists ??= createGate(listsAtOnce))(() => this.#readFirst(reading));
  }

  #readFirst<T extends object>(reading: ListReading<T>): MaybePromise<readonly T[]> {
    const { list, info, after, limit } = reading;
    const most = this.objectsLeft(info) + 1;
    const first = Math.min(limit === Infinity ? firstRecords : limit, most);
    const page = list.read({ after, limit: first });
    if (!isPromise(page)) return this.#addFirst(reading, page);
    return page.then((later) => this.#goOn(later, () => this.#addFirst(reading, later)));
  }

  #addFirst<T extends object>(reading: ListReading<T>, page: Page<T>): MaybePromise<readonly T[]> {
    const next = this.#add(reading, page);
    if (next === undefined) return reading.records;
    const readOn = () => andThen(this.#checkLength(reading), () => this.#readOn(reading, next));
    return (this.#longLists ??= createGate(1))(readOn);
  }

  #checkLength({ list, info, after, limit, size }: ListReading<object>): MaybePromise<void> {
    const left = this.objectsLeft(info);
    if (limit <= left) return undefined;
    this.countDropped(left * countedShare);
    return andThen(list.exceeds(left, after), (exceeds) => {
      if (exceeds) throw this.drop(size, info);
    });
  }

  #readOn<T extends object>(
    reading: ListReading<T>,
    next: NonNullable<Page<T>['next']>,
  ): MaybePromise<readonly T[]> {
    return andThen(next(), (page) => {
      const following = this.#add(reading, page);
      return following === undefined ? reading.records : this.#readOn(reading, following);
    });
  }

  /** Adds a page. Returns what reads the next one, or undefined when the list is complete. */
  #add<T extends object>(reading: ListReading<T>, { records, next }: Page<T>): Page<T>['next'] {
    const { limit, size, info } = reading;
    const missing = limit - reading.records.length;
    const added = records.length > missing ? records.slice(0, missing) : records;
    this.addTo(size, added, info);
    reading.records = reading.records.length === 0 ? added : [...reading.records, ...added];
    // The store ends a page early if its records are long.
    if (next !== undefined && reading.records.length < limit) return next;
    this.keep(size);
    return undefined;
  }

  /** Calls `step` when the operation may go on after it has got a page. */
  #goOn<T, U>({ records }: Page<T>, step: () => MaybePromise<U>): MaybePromise<U> {
    if (!this.#isExecuting) throw new Error('The operation has ended.');
    this.#arrived += records.length;
    if (this.#arrived <= smallRecordsMax) return step();
    this.#permit ??= this.limits.permits.acquire();
    return this.#permit.then(step);
  }

  beginExecution({ once }: Pick<GraphqlRequest, 'once'>): void {
    this.#isExecuting = true;
    if (once !== undefined) this.writes ??= new KeyedWrites(this.deps.store.requests);
    this.writes?.begin(once);
  }

  /**
   * Call it when the operation was executed: another large one may go on. What the store answers
   * after that, because another field has failed before, is dropped.
   */
  endExecution(): void {
    this.#isExecuting = false;
    void this.#permit?.then(this.limits.permits.release);
    this.#permit = undefined;
  }
}
