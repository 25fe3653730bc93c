/** A queue of logins in which the client with the fewest failures goes first (R21). */

import type { AppError } from '../errors.ts';

/** For whom a login waits. */
export interface Standing {
  readonly client: string;
  readonly failures: number;
}

interface Waiting {
  readonly client: string;
  readonly rank: number;
  readonly admit: () => void;
  readonly refuse: (error: AppError) => void;
}

export type RankedQueue = ReturnType<typeof createRankedQueue>;

/** `toRefusal`: the error for the last of the queue when more than `lengthMax` wait. */
export function createRankedQueue(lengthMax: number, toRefusal: () => AppError) {
  const queue: Waiting[] = [];
  return {
    /** Resolves when it is this login's turn. */
    wait({ client, failures }: Standing): Promise<void> {
      return new Promise((admit, refuse) => {
        // Logins of the same client that already wait count like failures.
        const rank = failures + queue.filter((other) => other.client === client).length;
        const place = queue.findIndex((other) => other.rank > rank);
        queue.splice(place === -1 ? queue.length : place, 0, { client, rank, admit, refuse });
        if (queue.length > lengthMax) queue.pop()?.refuse(toRefusal());
      });
    },
    /** Returns false if none waits. */
    admitNext(): boolean {
      const next = queue.shift();
      next?.admit();
      return next !== undefined;
    },
  };
}
