/**
 * Joins what is asked for in one turn of the event loop, by all requests, into few statements.
 * Nobody joins a statement that was sent before: every read begins after its request came, and
 * so sees all that was acknowledged before. Each request has its own time limit and error.
 */

import { isPromise } from '../../maybe-promise.ts';
import { createDeadlines } from './deadlines.ts';
import { busy, lost } from './faults.ts';

export interface GatherOptions<Item, Result> {
  /** Items with the same key get the same result. Default: no two items do. */
  readonly keyOf?: (item: Item) => string;
  /** Items of a statement, and their bytes unless it has only one. */
  readonly itemsMax: number;
  readonly bytesOf?: (item: Item) => number;
  /** Statements at the same time: what is slow or locked must leave connections for others. */
  readonly runningMax: number;
  /** How long one who asks waits. */
  readonly milliseconds: number;
  /** Returns the results in the order of the items. A result may be a promise of its own. */
  readonly run: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>;
}

/** Returns a function that asks for the result of one item. */
export type Gather<Item, Result> = (item: Item) => Promise<Result>;

/** Limit for those who wait: far more than one request may ask for. */
const askersMax = 100_000;
/** Limit for the items of a statement. */
const bytesMax = 1_048_576;

interface Entry<Item, Result> {
  readonly key: unknown;
  readonly item: Item;
  readonly askers: Asker<Item, Result>[];
}

interface Asker<Item, Result> {
  readonly entry: Entry<Item, Result>;
  readonly resolve: (result: Result | Promise<Result>) => void;
  readonly reject: (error: unknown) => void;
}

export function createGather<Item, Result>(
  options: GatherOptions<Item, Result>,
): Gather<Item, Result> {
  const { keyOf, runningMax, milliseconds, run } = options;
  /** What was not sent yet, by its key. */
  const waiting = new Map<unknown, Entry<Item, Result>>();
  let running = 0;
  let isScheduled = false;
  const askers = createDeadlines<Asker<Item, Result>>(milliseconds, (asker) => {
    const { key, askers: others } = asker.entry;
    others.splice(others.indexOf(asker), 1);
    if (others.length === 0 && waiting.get(key) === asker.entry) waiting.delete(key);
    asker.reject(lost());
  });

  const schedule = (): void => {
    if (isScheduled || waiting.size === 0) return;
    isScheduled = true;
    setImmediate(send);
  };
  const send = (): void => {
    isScheduled = false;
    for (let free = runningMax - running; free > 0 && waiting.size > 0; free -= 1) {
      void sendBatch(takeBatch(waiting, options));
    }
  };
  const sendBatch = async (batch: readonly Entry<Item, Result>[]): Promise<void> => {
    running += 1;
    try {
      const results = await run(batch.map(({ item }) => item));
      // The results are as many as the items.
      for (const [at, entry] of batch.entries())
        settle(entry, ({ resolve }) => resolve(results[at] as Result));
      // Statements of single items count like the one that they stand for.
      if (results.some((result) => isPromise(result))) await Promise.allSettled(results);
    } catch (error) {
      for (const entry of batch) settle(entry, ({ reject }) => reject(error));
    }
    running -= 1;
    schedule();
  };
  const settle = (
    { askers: own }: Entry<Item, Result>,
    end: (asker: Asker<Item, Result>) => void,
  ): void => {
    for (const asker of own) if (askers.delete(asker)) end(asker);
  };

  return (item) => {
    if (askers.size >= askersMax) return Promise.reject(busy());
    return new Promise((resolve, reject) => {
      const key = keyOf?.(item) ?? item;
      const entry = waiting.get(key) ?? { key, item, askers: [] };
      const asker = { entry, resolve, reject };
      entry.askers.push(asker);
      askers.add(asker);
      waiting.set(key, entry);
      schedule();
    });
  };
}

/** Takes the next entries out of the map: those of one statement. */
function takeBatch<Item, Result>(
  waiting: Map<unknown, Entry<Item, Result>>,
  { itemsMax, bytesOf }: GatherOptions<Item, Result>,
): readonly Entry<Item, Result>[] {
  const batch: Entry<Item, Result>[] = [];
  let bytes = 0;
  for (const [key, entry] of waiting) {
    bytes += bytesOf?.(entry.item) ?? 0;
    if (batch.length > 0 && bytes > bytesMax) break;
    waiting.delete(key);
    if (batch.push(entry) >= itemsMax) break;
  }
  return batch;
}
