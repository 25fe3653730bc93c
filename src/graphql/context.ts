/**
 * What resolvers can use, and what limits them: one context for each operation, one budget for each
 * request. The schema has a cycle (`author { posts { author …`) and texts of up to a mebibyte: a
 * short query can ask for millions of objects or gibibytes of text, and no limit on documents
 * prevents that. The budget also bounds the time that an operation holds the event loop.
 */

import { type FieldNode, type GraphQLResolveInfo, Kind, type SelectionSetNode } from 'graphql';
import type { Access } from '../auth/access.ts';
import type { Config } from '../config.ts';
import type { AddComment, Topic } from '../domain/comments.ts';
import { AppError, overloaded } from '../errors.ts';
import type { Log } from '../log.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import { type MemoryPool, type Reservation, uncountedBytesMax } from '../memory-pool.ts';
import type { List, Page, Range } from '../store/list.ts';
import type { Account, Comment } from '../store/model.ts';
import type { Records, Store } from '../store/store.ts';

/** Dependencies that all operations share. */
export interface ContextDeps extends Pick<Access, 'writesNeedToken' | 'readsNeedToken'> {
  readonly store: Store;
  /** Stores a comment, then publishes it. */
  readonly addComment: AddComment;
  /** The published comments, for the subscription. */
  readonly commentAdded: Pick<Topic<Comment>, 'subscribe'>;
  readonly log: Log;
}

/** Values of the request; all operations of a batch share them. */
export interface RequestScope {
  readonly requestId: string;
  /** The account of the request's token; undefined without one. Throws `invalid_token`. */
  readonly viewer: () => MaybePromise<Account | undefined>;
  /** Where the records of a cacheable response are read; default: the store. */
  readonly records?: Records;
  /** True for GET, which must not change anything (RFC 9110 §9.2.1). */
  readonly readsOnly?: boolean;
  /** The caller of `engine.createBudget()` releases it. */
  readonly budget: Budget;
}

/** Approximate memory of a field in a result, without a long text, in bytes. */
const fieldBytes = 48;

/** New for each operation: in a batch, a query must read what an earlier mutation wrote. */
export class GraphqlContext {
  readonly deps: Omit<ContextDeps, 'store'>;
  readonly records: Records;
  readonly scope: RequestScope;
  readonly #keepsObjects: boolean;
  readonly #countFields: ReturnType<typeof createFieldCounts>;

  constructor(
    deps: ContextDeps,
    scope: RequestScope,
    countFields: ReturnType<typeof createFieldCounts>,
  ) {
    this.deps = deps;
    this.records = scope.records ?? deps.store;
    this.scope = scope;
    this.#keepsObjects = deps.store.keepsObjects;
    this.#countFields = countFields;
  }

  /** Charges the budget for one object and its selected fields. Throws a BudgetError. */
  chargeObject(selection: Selection): void {
    this.scope.budget.charge(1, this.#countFields(selection) * fieldBytes);
  }

  /**
   * Returns the records of a range: as many as its limit, or all that there are. Charges the budget
   * for them and their selected fields. Throws, or rejects with, a BudgetError.
   */
  readList<T>(list: List<T>, selection: Selection, range: Range = {}): MaybePromise<readonly T[]> {
    const { budget } = this.scope;
    // Throws if the request was already refused, so that nothing more is read.
    budget.charge(0, 0);
    const { limit = Number.POSITIVE_INFINITY } = range;
    const bytesEach = this.#countFields(selection) * fieldBytes;
    const readOn = (page: Page<T>, earlier: readonly T[] = []): MaybePromise<readonly T[]> => {
      const room = limit - earlier.length;
      const records = page.records.length > room ? page.records.slice(0, room) : page.records;
      // A store that creates records anew for each read does so for this request alone.
      if (!this.#keepsObjects) budget.chargeRecords(records.reduce(addLengths, 0));
      budget.charge(records.length, records.length * bytesEach);
      const all = earlier.length === 0 ? records : [...earlier, ...records];
      // The store ends a page early if its records are long.
      if (page.next === undefined || all.length >= limit) return all;
      return andThen(page.next(), (next) => readOn(next, all));
    };
    return andThen(list.read(range), readOn);
  }

  /** Charges the budget for a text, and returns it. Throws a BudgetError. */
  chargeText(text: string): string {
    // A short text is included in `fieldBytes`.
    if (text.length > fieldBytes) this.scope.budget.charge(0, text.length);
    return text;
  }
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

/**
 * Counts the selected fields of one object, including those of fragments, to estimate the memory of
 * a result; a repeated field counts twice. Counts are cached, because documents are cached and run
 * again.
 */
export function createFieldCounts() {
  const counts = new WeakMap<FieldNode, number>();
  return ({ fieldNodes, fragments }: Selection): number => {
    let fields = 0;
    for (const node of fieldNodes) {
      let count = counts.get(node);
      if (count === undefined) {
        count = countIn(node.selectionSet, fragments, new Set());
        counts.set(node, count);
      }
      fields += count;
    }
    return fields;
  };
}

/** `seen`: names of fragments; each fragment counts once. */
function countIn(
  set: SelectionSetNode | undefined,
  fragments: Selection['fragments'],
  seen: Set<string>,
): number {
  let fields = 0;
  for (const selection of set?.selections ?? []) {
    if (selection.kind === Kind.FIELD) fields += 1;
    else if (selection.kind === Kind.INLINE_FRAGMENT) {
      fields += countIn(selection.selectionSet, fragments, seen);
    } else if (!seen.has(selection.name.value)) {
      seen.add(selection.name.value);
      fields += countIn(fragments[selection.name.value]?.selectionSet, fragments, seen);
    }
  }
  return fields;
}

/** Thrown when the request exceeds its budget. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
  /** graphql-js locates every error, which is slow, except one that has a path already. */
  readonly path: readonly string[] = [];
}

/** A result at most (R39), unless a quarter of the memory for all requests is less. */
const resultBytes = 4 * 1024 * 1024;
/** Records of a result that asks for few of their fields. */
const recordBytes = 16 * 1024 * 1024;

export function toBudgetLimits({
  graphqlObjectsMax,
  waitingBytesMax,
}: Pick<Config, 'graphqlObjectsMax' | 'waitingBytesMax'>) {
  const share = Math.floor(waitingBytesMax / 4);
  return {
    objectsMax: graphqlObjectsMax,
    /** For the results, and for their JSON. */
    bytesMax: Math.min(resultBytes, share),
    /** For records that were read for this request alone. */
    recordBytesMax: Math.min(recordBytes, share),
  };
}

/** The pool is asked for this many bytes at a time. */
const stepBytes = 65_536;

/** The budget of one request, batch or event. The code that creates it must release it. */
export class Budget {
  readonly #limits: ReturnType<typeof toBudgetLimits>;
  readonly #pool: Pick<MemoryPool, 'open'> | undefined;
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

  /** `pool` reserves the memory of a result in use. Absent for an event: only one is made. */
  constructor(limits: ReturnType<typeof toBudgetLimits>, pool?: Pick<MemoryPool, 'open'>) {
    this.#limits = limits;
    this.#pool = pool;
  }

  /** Charges objects and bytes of results. Returns the refusal once the budget is exceeded. */
  spend(objects: number, bytes: number): AppError | undefined {
    this.#objects += objects;
    this.#bytes += bytes;
    return this.#check();
  }

  /** Like `spend`, but throws a BudgetError instead of returning the refusal. */
  charge(objects: number, bytes: number): void {
    if (this.spend(objects, bytes) !== undefined) throw (this.#error ??= new BudgetError());
  }

  /** Charges records that were read for this request alone. Throws a BudgetError. */
  chargeRecords(bytes: number): void {
    this.#recordBytes += bytes;
    this.charge(0, 0);
  }

  /** Charges the JSON of a result. Returns the refusal once the budget is exceeded. */
  spendJson(bytes: number): AppError | undefined {
    this.#jsonBytes += bytes;
    return this.#check();
  }

  /** Returns its memory to the pool. */
  release(): void {
    this.#reservation?.release();
    this.#reservation = undefined;
  }

  #check(): AppError | undefined {
    if (this.refusal !== undefined) return this.refusal;
    const { objectsMax, bytesMax, recordBytesMax } = this.#limits;
    const bytes = this.#bytes + this.#jsonBytes + this.#recordBytes;
    if (this.#objects > objectsMax) this.refusal = tooMuch(`${objectsMax} objects`);
    else if (Math.max(this.#bytes, this.#jsonBytes) > bytesMax) {
      this.refusal = tooMuch(`${bytesMax} bytes`);
    } else if (this.#recordBytes > recordBytesMax) {
      this.refusal = tooMuch(`${recordBytesMax} bytes of records`);
    } else if (bytes > uncountedBytesMax && !this.#reserve(bytes)) {
      this.refusal = overloaded('Too many responses are being made or sent.');
    }
    // The partial result is not sent, so its memory is free.
    if (this.refusal !== undefined) this.release();
    return this.refusal;
  }

  /** Grows in steps, so that the pool is not asked for each object. */
  #reserve(bytes: number): boolean {
    if (this.#pool === undefined) return true;
    this.#reservation ??= this.#pool.open();
    const missing = bytes - this.#reservation.bytes;
    return missing <= 0 || this.#reservation.grow(Math.max(missing, stepBytes));
  }
}

function tooMuch(limit: string): AppError {
  const message =
    `The request asks for more than ${limit}; ` +
    'ask for less at a time, with `first` and `after`.';
  return new AppError('content_too_large', message);
}
