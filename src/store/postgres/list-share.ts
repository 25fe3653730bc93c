/**
 * The connections that lists may take. The pages of the lists of one table take a few of them, so
 * that a table that is locked, or slow to read, leaves the others to every other statement.
 */

import { AppError } from '../../errors.ts';

/** Runs `read` when a connection is free for lists of this table; rejects with `overloaded`. */
export type ListShare = <T>(table: string, read: () => Promise<T>) => Promise<T>;

/** Pages that wait for those of the same table, and how long one of them waits. */
const waitingMax = 100;
const waitMilliseconds = 2_000;

export function createListShare(connectionsMax: number): ListShare {
  const shareMax = Math.max(1, Math.floor(connectionsMax / 4));
  const tables = new Map<string, { running: number; readonly waiting: Set<() => void> }>();

  return async (name, read) => {
    const table = tables.get(name) ?? { running: 0, waiting: new Set<() => void>() };
    tables.set(name, table);
    if (table.running >= shareMax) {
      if (table.waiting.size >= waitingMax) throw busy();
      await turn(table.waiting);
    } else table.running += 1;
    try {
      return await read();
    } finally {
      const [next] = table.waiting;
      // The place is handed over: nobody takes it in between.
      if (next === undefined) table.running -= 1;
      else next();
    }
  };
}

function turn(waiting: Set<() => void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const start = (): void => {
      clearTimeout(timer);
      waiting.delete(start);
      resolve();
    };
    const timer = setTimeout(() => {
      waiting.delete(start);
      reject(busy());
    }, waitMilliseconds);
    waiting.add(start);
  });
}

function busy(): AppError {
  return new AppError('overloaded', 'Too many lists are being read.', { retryAfterSeconds: 2 });
}
