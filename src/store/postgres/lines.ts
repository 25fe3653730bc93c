/**
 * The lines of a node for transactions that hold locks: what waits for a lock in the database keeps
 * a connection, so that few do.
 */

import { type AppError, overloaded } from '../../errors.ts';
import { createSerial, type Serial } from '../../serial.ts';
import type { DurableFileIndex } from '../file-index.ts';
import type { Articles } from '../store.ts';

/** Of each kind at once: the others leave connections to those who need no lock. */
const atOnce = 2;
/** Limit for those that wait. A change of all articles may be a thousand times as long. */
const waitingMax = 1_000;
const waitingForAllMax = 100;

const tooManyChanges = (): AppError => overloaded('Too many changes of articles.');
const tooManyFiles = (): AppError => overloaded('Too many files are being stored.');

/** Changes of one article wait for no others, as long as two make progress. */
export function withLines(articles: Articles): Articles {
  const ofAll = createSerial({ waitingMax: waitingForAllMax, toRejection: tooManyChanges });
  const ofSingle = createSerial({ atOnce });
  const ofOne = new Map<number, Serial>();
  let waiting = 0;
  return {
    ...articles,
    async change(id, ...given) {
      if (waiting >= waitingMax) throw tooManyChanges();
      waiting += 1;
      const line = ofOne.get(id) ?? createSerial();
      ofOne.set(id, line);
      try {
        return await line.run(() => ofSingle.run(async () => articles.change(id, ...given)));
      } finally {
        waiting -= 1;
        if (line.isIdle) ofOne.delete(id);
      }
    },
    changeAll: async (...given) => ofAll.run(async () => articles.changeAll(...given)),
  };
}

export function withLine(index: DurableFileIndex): DurableFileIndex {
  const line = createSerial({ atOnce, waitingMax, toRejection: tooManyFiles });
  return { ...index, commit: (...given) => line.run(async () => index.commit(...given)) };
}
