/**
 * What the resolvers of one request, batch or event use. It reads lists page by page, each charged
 * before its records are resolved (`budget.ts`).
 *
 * A store that answers later answers many lists at once: an operation reads at most a hundred at
 * the same time, and what was read goes on a few at a time (`pace.ts`).
 */

import type { GraphQLResolveInfo } from 'graphql';
import type { Access } from '../auth/access.ts';
import type { AddComment, Announced, Topic } from '../domain/comments.ts';
import type { Reader, Records } from '../domain/readers.ts';
import type { Log } from '../log.ts';
import { AppError } from '../errors.ts';
import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { ConnectionMemory } from '../memory-pool.ts';
import type { Account, Author } from '../store/model.ts';
import { TrackedRecords } from '../records/tracked-records.ts';
import type { List, Page, Range, Store } from '../store/store.ts';
import { Budget, type BudgetLimits, nestedRecordsMax } from './budget.ts';
import type { OperationKey } from './documents/documents.ts';
import { createRotation, type Rotation } from './rotation.ts';

/** Dependencies that all operations share. */
export interface ContextDeps extends Pick<
  Access,
  | 'writesNeedToken'
  | 'commentsNeedToken'
  | 'asReader'
  | 'hasOwners'
  | 'hasReaders'
  | 'readsNeedToken'
> {
  readonly store: Store;
  /** Stores a comment, then publishes it. */
  readonly addComment: AddComment;
  /** The published comments, for the subscription. */
  readonly commentAdded: Pick<Topic<Announced>, 'subscribe'>;
  readonly log: Log;
}

/** What a transport knows of a request. */
export interface RequestFacts {
  readonly requestId: string;
  /** The address of the client (R34), which is logged with what it changes (R53). */
  readonly client?: () => string;
  /** The account of the request's token; undefined without one. Throws `invalid_token`. */
  readonly viewer: () => MaybePromise<Account | undefined>;
  /** The records of a cacheable response, which are those of the viewer. */
  readonly records?: Records;
  /** Of the connection that holds the result until its client has taken it. */
  readonly memory?: ConnectionMemory;
}

/** What an operation needs of its viewer, and who asks. */
export function createIdentity({ asReader, hasReaders, readsNeedToken }: ContextDeps) {
  const checkAccount = (account: Account | undefined): Account | undefined => {
    if (account !== undefined || !readsNeedToken) return account;
    throw new AppError('missing_token', 'This operation needs a bearer token.');
  };
  return {
    /** The account, if responses depend on it; throws, or rejects, without the token it needs. */
    authorize: (viewer: RequestFacts['viewer']): MaybePromise<Account | undefined> =>
      hasReaders ? andThen(viewer(), checkAccount) : undefined,
    readerOf: asReader,
  };
}

/** Records of a page. */
const pageRecordsMax = 500;
/** Lists that are read at the same time: as many as one statement on PostgreSQL reads. */
const listsAtOnce = 100;

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
  /** The key of the operation that is executed (R40). */
  once: OperationKey | undefined;
  /** The comments that it has added and that wait (R48). */
  readonly pendingComments: string[] = [];
  /** The writes that were done before, under their keys. */
  replays = 0;
  /** Of the comment of an event: events wait for no store. */
  author: Author | undefined;
  #records: Records | undefined;
  #reading: Rotation | undefined;

  constructor(deps: ContextDeps, facts: RequestFacts, limits: BudgetLimits) {
    super(limits, facts.memory);
    this.deps = deps;
    this.facts = facts;
    this.reader = deps.asReader(); // reads what is published
    this.#records = facts.records;
  }

  /** All that resolvers read. */
  get records(): Records {
    return (this.#records ??= new TrackedRecords(this.deps.store, { reader: this.reader }));
  }

  findAuthor(id: string): MaybePromise<Author | undefined> {
    return this.author?.id === id ? this.author : this.records.authors.find(id);
  }

  /**
   * Returns the records of a range: as many as its limit, or all that there are. Charges them and
   * what is resolved for them. Throws, or rejects, as `chargeObject` does; for a list inside an
   * object that does not fit, with an error of its own (R43).
   */
  readList<T extends object>(
    list: List<T>,
    info: GraphQLResolveInfo,
    { after, limit }: Range = {},
  ): MaybePromise<readonly T[]> {
    const unasked = info.path.prev === undefined ? Number.POSITIVE_INFINITY : nestedRecordsMax;
    // One more than it may have, so that a list that just fits is told from a longer one.
    const most = limit ?? unasked + 1;
    const add = (before: readonly T[], page: MaybePromise<Page<T>>): MaybePromise<readonly T[]> => {
      if (isPromise(page)) {
        return page.then(async (later) => {
          await this.limits.pace(later.records.length);
          return add(before, later);
        });
      }
      // A store ends a page early if its records are long; the next one may have more than missing.
      const added = page.records.slice(0, most - before.length);
      const { next, leftOut } = page;
      this.countRead(added, info, leftOut !== undefined);
      const records = before.length === 0 ? added : [...before, ...added];
      if (next !== undefined && records.length < most && records.length <= this.recordsLeft(info)) {
        // What is left out takes as long as what is shown, and no limit ends it.
        if (leftOut) return this.limits.pace(leftOut).then(() => add(records, next()));
        return add(records, next());
      }
      if (records.length > (limit ?? unasked)) throw this.refuse(info);
      this.chargeRecords(records, info);
      return records;
    };
    const read = (): MaybePromise<readonly T[]> => {
      this.checkRead(info);
      const first = Math.min(most, pageRecordsMax, this.recordsLeft(info) + 1);
      return add([], list.read({ after, limit: first }));
    };
    if (this.limits.keepsObjects) return read();
    this.#reading ??= createRotation(listsAtOnce);
    return this.#reading.run(this, async () => read());
  }
}
