/**
 * Joins what is asked for in one turn of the event loop, by all requests, into few statements.
 * Nobody joins a statement that was sent before: every read begins after its request came, and
 * so sees all that was acknowledged before.
 */

import { busy } from './faults.ts';

/** The result of an item that needs a statement of its own. */
export const alone = Symbol('alone');

/** What can be asked for together. `askedAt`: when the first of these requests came. */
export interface Kind<Item, Result> {
  /** Items with the same key get the same result. Default: the item itself. */
  readonly keyOf?: (item: Item) => unknown;
  /** Limit for the items of a statement, unless it has only one. */
  readonly weightMax: number;
  readonly weightOf: (item: Item) => number;
  /** Returns the results in the order of the items. */
  together(items: readonly Item[], askedAt: number): Promise<readonly (Result | typeof alone)[]>;
  alone(item: Item, askedAt: number): Promise<Result>;
}

/** Asks for the result of one item. */
export type Gather<Item, Result> = (item: Item) => Promise<Result>;

/** Statements of a kind at the same time: what is slow or locked leaves connections for others. */
const runningMax = 3;
/** Of these, at most so many are of items together, and so many of items alone: none waits long. */
const sameMax = 2;
/** Only what came within this time is joined: who asks first decides when all are too late. */
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

export function createGather<Item, Result>(kind: Kind<Item, Result>): Gather<Item, Result> {
  /** What was not sent yet, and what the last of each key gets. */
  const waiting: Entry<Item, Result>[] = [];
  const lastOf = new Map<unknown, { askedAt: number; result: Promise<Result> }>();
  /** What was sent together, and has to be sent alone. */
  const single: Entry<Item, Result>[] = [];
  const running = { together: 0, alone: 0 };
  let isScheduled = false;

  const schedule = (): void => {
    if (isScheduled || waiting.length + single.length === 0) return;
    isScheduled = true;
    setImmediate(send);
  };
  const isFree = (how: 'together' | 'alone'): boolean =>
    running[how] < sameMax && running.together + running.alone < runningMax;
  const send = (): void => {
    isScheduled = false;
    while (isFree('alone') && single.length > 0) void run('alone', sendAlone(single.shift()));
    while (isFree('together') && waiting.length > 0) {
      const batch = waiting.splice(0, countJoined(waiting, kind));
      for (const { key, askedAt } of batch) {
        if (lastOf.get(key)?.askedAt === askedAt) lastOf.delete(key);
      }
      void run('together', sendTogether(batch));
    }
  };
  const run = async (how: 'together' | 'alone', sent: Promise<void> | undefined): Promise<void> => {
    running[how] += 1;
    await sent;
    running[how] -= 1;
    schedule();
  };
  const sendAlone = (entry: Entry<Item, Result> | undefined): Promise<void> | undefined =>
    entry && kind.alone(entry.item, entry.askedAt).then(entry.resolve, entry.reject);
  const sendTogether = async (batch: readonly Entry<Item, Result>[]): Promise<void> => {
    try {
      const items = batch.map(({ item }) => item);
      const results = await kind.together(items, batch[0]?.askedAt ?? 0);
      for (const [at, entry] of batch.entries()) {
        const result = results[at] as Result | typeof alone; // there are as many as items
        if (result === alone) single.push(entry);
        else entry.resolve(result);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  return (item) => {
    const key = kind.keyOf?.(item) ?? item;
    const askedAt = performance.now();
    const last = lastOf.get(key);
    if (last !== undefined && askedAt - last.askedAt < joinedMilliseconds) return last.result;
    if (waiting.length >= waitingMax) return Promise.reject(busy());
    const result = new Promise<Result>((resolve, reject) => {
      waiting.push({ item, key, askedAt, resolve, reject });
    });
    lastOf.set(key, { askedAt, result });
    schedule();
    return result;
  };
}

/** Returns how many of the entries, from the first on, go into one statement. */
function countJoined<Item, Result>(
  waiting: readonly Entry<Item, Result>[],
  { weightMax, weightOf }: Kind<Item, Result>,
): number {
  const endsAt = (waiting[0]?.askedAt ?? 0) + joinedMilliseconds;
  let weight = 0;
  const end = waiting.findIndex(({ item, askedAt }, at) => {
    weight += weightOf(item);
    return at > 0 && (weight > weightMax || askedAt >= endsAt);
  });
  return end === -1 ? waiting.length : end;
}
