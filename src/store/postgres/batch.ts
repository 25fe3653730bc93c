/**
 * DataLoader with a concurrency limit: joins what all requests load in one iteration of the event
 * loop, or while statements run, into few statements.
 *
 * 1. An item joins the newest group that has not been sent, if that has room and was opened
 *    within the last second. Otherwise it opens the next group: a group has the deadline of its
 *    first item.
 * 2. A group is sent at the end of an iteration, as soon as less than two are running.
 * 3. Items of a group with the same key share a result. No item joins what was sent before: a read
 *    starts after its request came, so that it finds everything that was acknowledged before.
 * 4. An item for which `loadMany` returns `individually` is loaded by `loadOne`, also two at a
 *    time: long items keep no statement from short ones.
 *
 *     iteration 1: load(a), load(b), load(a)    → loadMany([a, b])
 *     iteration 2: load(c)                      → loadMany([c]); two are running
 *     iteration 3: load(a), load(d)             wait
 *     the first returns [a, individually]       → loadMany([a, d]) and loadOne(b)
 */

import { setImmediate as endOfIteration } from 'node:timers/promises';
import { createSerial } from '../../serial.ts';
import { busy } from './client/faults.ts';

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

/** Statements of a kind that run at once: the others keep connections if these are slow. */
const atOnce = 2;
/** Groups that wait, and items that wait to be loaded individually. */
const [groupsMax, individualMax] = [1_000, 100_000];
const joinedMilliseconds = 1_000;

interface Group<Item, Result> {
  readonly askedAt: number;
  readonly items: Item[];
  cost: number;
  readonly results: Promise<readonly (Result | typeof individually)[]>;
  readonly byKey: Map<unknown, Promise<Result>>;
}

export function createLoader<Item, Result>(batch: Batch<Item, Result>): Loader<Item, Result> {
  const groups = createSerial({ atOnce, waitingMax: groupsMax, toRejection: busy });
  const individual = createSerial({ atOnce, waitingMax: individualMax, toRejection: busy });
  let newest: Group<Item, Result> | undefined;

  const open = (askedAt: number): Group<Item, Result> => {
    const items: Item[] = [];
    const results = groups.run(async () => {
      await endOfIteration();
      if (newest?.items === items) newest = undefined;
      return batch.loadMany(items, askedAt);
    });
    return { askedAt, items, cost: 0, results, byKey: new Map() };
  };
  const add = async (item: Item, { items, results, askedAt }: Group<Item, Result>) => {
    const at = items.push(item) - 1;
    // There are as many as items.
    const result = (await results)[at] as Result | typeof individually;
    return result === individually ? individual.run(() => batch.loadOne(item, askedAt)) : result;
  };

  return (item) => {
    const [key, cost, now] = [batch.keyOf?.(item) ?? item, batch.costOf(item), performance.now()];
    if (newest !== undefined && now - newest.askedAt >= joinedMilliseconds) newest = undefined;
    const found = newest?.byKey.get(key);
    if (found !== undefined) return found;
    if (newest !== undefined && newest.cost + cost > batch.costMax) newest = undefined;
    newest ??= open(now);
    newest.cost += cost;
    const result = add(item, newest);
    newest.byKey.set(key, result);
    return result;
  };
}
