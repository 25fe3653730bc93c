/** Lets in logins under one key one at a time, at intervals; the fewest failures go first. */

import { AppError } from '../errors.ts';

export interface LoginQueue {
  /**
   * Resolves when this attempt is let in: at once where no other was within the interval. `who`
   * names its client, and `failures` are that client's. Rejects with `overloaded` where too many
   * wait and this attempt is, or comes to be, the last of them.
   */
  enter(key: string, attempt: { readonly who: string; readonly failures: number }): Promise<void>;
}

interface Waiting {
  readonly who: string;
  readonly rank: number;
  readonly letIn: () => void;
  readonly refuse: (error: AppError) => void;
}

/** Between two logins under one key. */
const intervalMilliseconds = 500;

/** Under one key: the last of them waits 20 seconds. */
export const waitingMax = 40;

export function createLoginQueue(): LoginQueue {
  // A key stays until an interval ends in which no login has waited.
  const queues = new Map<string, Waiting[]>();

  const scheduleNext = (key: string, queue: Waiting[]): void => {
    setTimeout(() => {
      const next = queue.shift();
      if (next === undefined) {
        queues.delete(key);
        return;
      }
      scheduleNext(key, queue);
      next.letIn();
    }, intervalMilliseconds).unref();
  };

  return {
    enter(key, { who, failures }) {
      const queue = queues.get(key);
      if (queue === undefined) {
        const opened: Waiting[] = [];
        queues.set(key, opened);
        scheduleNext(key, opened);
        return Promise.resolve();
      }
      return new Promise((resolve, reject) => {
        // What one client has waiting counts against its next attempt as failures do.
        const rank = failures + queue.filter((other) => other.who === who).length;
        const place = queue.findIndex((other) => other.rank > rank);
        const waiting = { who, rank, letIn: resolve, refuse: reject };
        queue.splice(place === -1 ? queue.length : place, 0, waiting);
        if (queue.length > waitingMax) queue.pop()?.refuse(tooMany());
      });
    },
  };
}

function tooMany(): AppError {
  return new AppError('overloaded', 'Too many logins are waiting. Try again later.', {
    retryAfterSeconds: Math.ceil((intervalMilliseconds * waitingMax) / 1000),
  });
}
