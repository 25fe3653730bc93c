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
import type { List, Page, Range, Records, Store } from '../store/store.ts';
import type { Account, Comment } from '../store/model.ts';

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

  /** Charges the budget for one object and its selected fields. Throws beyond it. */
  chargeObject(selection: Selection): void {
    this.scope.budget.charge(1, this.#countFields(selection) * fieldBytes);
  }

  /**
   * Returns the records of a range: as many as its limit, or all that there are. Charges the budget
   * for them and their selected fields. Throws, or rejects, beyond it.
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
      const recordBytes = this.#keepsObjects ? 0 : records.reduce(addLengths, 0);
      budget.charge(records.length, records.length * bytesEach, recordBytes);
      const all = earlier.length === 0 ? records : [...earlier, ...records];
      // The store ends a page early if its records are long.
      if (page.next === undefined || all.length >= limit) return all;
      return andThen(page.next(), (next) => readOn(next, all));
    };
    return andThen(list.read(range), readOn);
  }

  /** Charges the budget for a text, and returns it. Throws beyond it. */
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

/**
 * Thrown by resolvers beyond the budget; the result is dropped. graphql-js locates every error,
 * which is slow, except one that has a path already.
 */
const overBudget = Object.assign(new Error('The budget is exceeded.'), { path: [] });

/** A result at most (R39), unless a quarter of the memory for all requests is less. */
const resultBytesMax = 4 * 1024 * 1024;
/** Records of a result that asks for few of their fields. */
const recordBytesMax = 16 * 1024 * 1024;

/** The pool is asked for this many bytes at a time. */
const stepBytes = 65_536;

/** The budget of one request, batch or event. The code that creates it must release it. */
export class Budget {
  readonly #objectsMax: number;
  /** For the results, and for their JSON. */
  readonly #bytesMax: number;
  /** For records that were read for this request alone. */
  readonly #recordBytesMax: number;
  readonly #pool: Pick<MemoryPool, 'open'> | undefined;
  #reservation: Reservation | undefined;
  /** Objects requested so far, including refused ones. */
  #objects = 0;
  /** Approximate memory of the results before they become JSON. */
  #bytes = 0;
  #jsonBytes = 0;
  #recordBytes = 0;
  /**
   * Set at the first refusal, and permanent: `content_too_large` if the request asks for too much,
   * `overloaded` if all requests together hold too much.
   */
  refusal: AppError | undefined;

  /** `pool` reserves the memory of a result in use. Absent for an event: only one is made. */
  constructor(
    { graphqlObjectsMax, waitingBytesMax }: Pick<Config, 'graphqlObjectsMax' | 'waitingBytesMax'>,
    pool?: Pick<MemoryPool, 'open'>,
  ) {
    const share = Math.floor(waitingBytesMax / 4);
    this.#objectsMax = graphqlObjectsMax;
    this.#bytesMax = Math.min(resultBytesMax, share);
    this.#recordBytesMax = Math.min(recordBytesMax, share);
    this.#pool = pool;
  }

  /** Charges objects and bytes of results. Returns the refusal once the budget is exceeded. */
  spend(objects: number, bytes: number, recordBytes = 0): AppError | undefined {
    this.#objects += objects;
    this.#bytes += bytes;
    this.#recordBytes += recordBytes;
    return this.#check();
  }

  /** Like `spend`, but throws instead of returning the refusal. */
  charge(objects: number, bytes: number, recordBytes = 0): void {
    if (this.spend(objects, bytes, recordBytes) !== undefined) throw overBudget;
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
    const bytes = this.#bytes + this.#jsonBytes + this.#recordBytes;
    if (this.#recordBytes > this.#recordBytesMax) {
      this.refusal = tooMuch(`${this.#recordBytesMax} bytes of records`);
    } else if (this.#objects > this.#objectsMax) {
      this.refusal = tooMuch(`${this.#objectsMax} objects`);
    } else if (Math.max(this.#bytes, this.#jsonBytes) > this.#bytesMax) {
      this.refusal = tooMuch(`${this.#bytesMax} bytes`);
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
