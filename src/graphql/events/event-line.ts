/** The order in which the events of all subscriptions are made. */

import { setTimeout as delay } from 'node:timers/promises';
import type { MemoryPool } from '../../memory-pool.ts';
import { createSerial } from '../../serial.ts';

/** A longer event waits while memory is short … */
const smallLengthMax = 65_536;
/** … which is polled at this interval … */
const pollMilliseconds = 50;
/** … so often at most: in ten seconds those who do not read are disconnected. */
const pollsMax = 200;
/** An event may be overtaken by shorter ones for one millisecond for so many characters. */
const lengthPerMillisecond = 1_000;

/** Resolves when `make` has made and delivered an event. `length`: its length at most. */
export type EventLine = (length: number, make: () => Promise<void>) => Promise<void>;

/**
 * Makes the events of all groups one after the other. Large events wait in a line of their own,
 * where shorter ones go first. So a small event waits for one large event at most, and a large one
 * begins only when there is memory again.
 */
export function createEventLine(pool: Pick<MemoryPool, 'isOver'>): EventLine {
  const all = createSerial();
  const large = createSerial();
  return (length, make) => {
    if (length <= smallLengthMax) return all.run(make);
    const makeLarge = async (): Promise<void> => {
      for (let polls = 0; pool.isOver && polls < pollsMax; polls += 1) {
        await delay(pollMilliseconds, undefined, { ref: false });
      }
      await all.run(make);
    };
    return large.run(makeLarge, { delay: length / lengthPerMillisecond });
  };
}
