/** Makes logins under one key take turns, those who failed least first. */

import { AppError } from '../errors.ts';

export interface LoginTurns {
  /**
   * Resolves when it is this attempt's turn: at once where nothing was let in just before. `who`
   * tells apart those who wait; `failures` are theirs. Rejects with `overloaded` where too many
   * wait, and this one, or a later one in its place, has failed more often than they.
   */
  take(key: string, attempt: { readonly who: string; readonly failures: number }): Promise<void>;
}

interface Waiting {
  readonly who: string;
  readonly rank: number;
  readonly enter: () => void;
  readonly refuse: (error: AppError) => void;
}

/** Between two turns under one key. */
const turnMilliseconds = 500;

/** Under one key: the last of them waits 20 seconds. */
export const waitingMax = 40;

export function createLoginTurns(): LoginTurns {
  // A key stays until a turn comes that nobody has waited for.
  const queues = new Map<string, Waiting[]>();

  const scheduleTurn = (key: string, queue: Waiting[]): void => {
    setTimeout(() => {
      const next = queue.shift();
      if (next === undefined) {
        queues.delete(key);
        return;
      }
      scheduleTurn(key, queue);
      next.enter();
    }, turnMilliseconds).unref();
  };

  return {
    take(key, { who, failures }) {
      const queue = queues.get(key);
      if (queue === undefined) {
        const opened: Waiting[] = [];
        queues.set(key, opened);
        scheduleTurn(key, opened);
        return Promise.resolve();
      }
      return new Promise((resolve, reject) => {
        // What one client has waiting counts against its next attempt as failures do.
        const rank = failures + queue.filter((other) => other.who === who).length;
        const place = queue.findIndex((other) => other.rank > rank);
        const waiting = { who, rank, enter: resolve, refuse: reject };
        queue.splice(place === -1 ? queue.length : place, 0, waiting);
        if (queue.length > waitingMax) queue.pop()?.refuse(tooMany());
      });
    },
  };
}

function tooMany(): AppError {
  return new AppError('overloaded', 'Too many logins wait for their turn. Try again later.', {
    retryAfterSeconds: Math.ceil((turnMilliseconds * waitingMax) / 1000),
  });
}
