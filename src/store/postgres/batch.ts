/**
 * DataLoader with a concurrency limit: joins what all requests load in one iteration of the event
 * loop into few statements.
 *
 *     load(item) → waiting ──→ loadMany (at most 2) ──────────────→ result
 *                                   └→ individual → loadOne (at most 2) ──↑
 *                                                        (in all: at most 3)
 *
 * 1. An item waits for the end of the iteration, and then until a statement may run.
 * 2. `loadMany` loads the items that wait, from the oldest on, up to `costMax`. A batch has the
 *    deadline of its oldest item; items that came a second later go into the next one.
 * 3. Items with the same key share a result, as long as the first of them waits. No item joins a
 *    statement that was sent before: a read starts after its request came, so that it finds
 *    everything that was acknowledged before.
 * 4. An item for which `loadMany` returns `individually` is loaded by `loadOne`. Long items keep
 *    one statement for short ones, and short items keep one for long ones.
 *
 *     iteration 1: load(a), load(b), load(a)    → loadMany([a, b])
 *     iteration 2: load(c)                      → loadMany([c]); two are running
 *     iteration 3: load(a), load(d)             wait
 *     the first returns [a, individually]       → loadMany([a, d]) and loadOne(b)
 */

import { busy } from './faults.ts';

/** The result of an item that needs a statement of its own. */
export const individually = Symbol('individually');

/** How items are loaded. `askedAt`: when the first of these items was asked for. */
export interface Batch<Item, Result> {
  /** Items with the same key get the same result. Default: the item itself. */
  readonly keyOf?: (item: Item) => unknown;
  /** Limit for the cost of the items of a statement, unless it has only one. */
  readonly costMax: number;
  readonly costOf: (item: Item) => number;
  /** Returns the results in the order of the items. */
  loadMany(
    items: readonly Item[],
    askedAt: number,
  ): Promise<readonly (Result | typeof individually)[]>;
  loadOne(item: Item, askedAt: number): Promise<Result>;
}

/** Loads one item. */
type Loader<Item, Result> = (item: Item) => Promise<Result>;

/** Limit for the statements of a loader that run: the others keep connections if these are slow. */
const runningMax = 3;
/** Limit for those of `loadMany`, and for those of `loadOne`. */
const runningOfOneKindMax = 2;
const joinedMilliseconds = 1_000;
/** Limit for the items that wait: far more than one request may ask for. */
const waitingMax = 100_000;

interface Entry<Item, Result> {
  readonly item: Item;
  readonly key: unknown;
  readonly askedAt: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export function createLoader<Item, Result>(batch: Batch<Item, Result>): Loader<Item, Result> {
  const waiting: Entry<Item, Result>[] = [];
  /** The newest entry that waits, by key: other items with the key get the same result. */
  const shared = new Map<unknown, { askedAt: number; result: Promise<Result> }>();
  const individual: Entry<Item, Result>[] = [];
  const running = { many: 0, one: 0 };
  let isScheduled = false;

  const schedule = (): void => {
    if (isScheduled || waiting.length + individual.length === 0) return;
    isScheduled = true;
    setImmediate(send);
  };
  const mayRun = (kind: 'many' | 'one'): boolean =>
    running[kind] < runningOfOneKindMax && running.many + running.one < runningMax;
  const send = (): void => {
    isScheduled = false;
    while (mayRun('one') && individual.length > 0)
      void run('one', individual.splice(0, 1), loadOne);
    while (mayRun('many') && waiting.length > 0) {
      const entries = waiting.splice(0, countJoined(waiting, batch));
      for (const { key, askedAt } of entries) {
        if (shared.get(key)?.askedAt === askedAt) shared.delete(key);
      }
      void run('many', entries, loadMany);
    }
  };
  const run = async (
    kind: 'many' | 'one',
    entries: readonly Entry<Item, Result>[],
    load: (entries: readonly Entry<Item, Result>[]) => Promise<void>,
  ): Promise<void> => {
    running[kind] += 1;
    try {
      await load(entries);
    } catch (error) {
      for (const { reject } of entries) reject(error);
    }
    running[kind] -= 1;
    schedule();
  };
  const loadOne = async ([entry]: readonly Entry<Item, Result>[]): Promise<void> => {
    if (entry !== undefined) entry.resolve(await batch.loadOne(entry.item, entry.askedAt));
  };
  const loadMany = async (entries: readonly Entry<Item, Result>[]): Promise<void> => {
    const items = entries.map(({ item }) => item);
    const results = await batch.loadMany(items, entries[0]?.askedAt ?? 0);
    for (const [at, entry] of entries.entries()) {
      const result = results[at] as Result | typeof individually; // there are as many as items
      if (result === individually) individual.push(entry);
      else entry.resolve(result);
    }
  };

  return (item) => {
    const key = batch.keyOf?.(item) ?? item;
    const askedAt = performance.now();
    const found = shared.get(key);
    if (found !== undefined && askedAt - found.askedAt < joinedMilliseconds) return found.result;
    if (waiting.length >= waitingMax) return Promise.reject(busy());
    const result = new Promise<Result>((resolve, reject) => {
      waiting.push({ item, key, askedAt, resolve, reject });
    });
    shared.set(key, { askedAt, result });
    schedule();
    return result;
  };
}

/** Returns how many of the entries, from the first on, go into one statement. */
function countJoined<Item, Result>(
  waiting: readonly Entry<Item, Result>[],
  { costMax, costOf }: Batch<Item, Result>,
): number {
  const endsAt = (waiting[0]?.askedAt ?? 0) + joinedMilliseconds;
  let cost = 0;
  const end = waiting.findIndex(({ item, askedAt }, at) => {
    cost += costOf(item);
    return at > 0 && (cost > costMax || askedAt >= endsAt);
  });
  return end === -1 ? waiting.length : end;
}
