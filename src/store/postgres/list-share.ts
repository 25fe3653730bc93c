/**
 * Limits the connections for lists. Pages of one table may use only a few, so that a table that is
 * locked or slow leaves connections for other statements.
 */

import { type AppError, overloaded } from '../../errors.ts';

/** Runs `read` when a connection for lists of this table is free. Rejects with `overloaded`. */
export type ListShare = <T>(table: string, read: () => Promise<T>) => Promise<T>;

/** Pages that may wait for others of the same table, and for how long. */
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
      // The connection is handed over directly, so that no other page can take it.
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
  return overloaded('Too many lists are being read.', 2);
}
