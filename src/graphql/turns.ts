/**
 * Turns of the event loop for work that takes long: of all that wait for one, one a time goes on,
 * so that large answers and events share what they take of the loop, however many they are.
 */

export interface Turns {
  /** Resolves in a later turn of the loop, in the order asked, one caller in each turn. */
  next(): Promise<void>;
}

/** What one caller may take of a turn. */
export const turnMilliseconds = 5;

export function createTurns(): Turns {
  const waiting: (() => void)[] = [];

  const wake = (): void => {
    const resolve = waiting.shift();
    if (waiting.length > 0) setImmediate(wake);
    resolve?.();
  };

  return {
    next: () =>
      new Promise((resolve) => {
        if (waiting.push(resolve) === 1) setImmediate(wake);
      }),
  };
}

/** Work in many small steps: so much of each turn of the loop, then the next turn. */
export class Pace {
  readonly #turns: Turns;
  #end = 0;
  #isOpen = false;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /** To be asked for between two steps: what to await, where this turn has had its part. */
  wait(): Promise<void> | undefined {
    const now = performance.now();
    if (this.#isOpen && now >= this.#end) {
      return this.#turns.next().then(() => this.#open(performance.now()));
    }
    if (!this.#isOpen) this.#open(now);
    return undefined;
  }

  #open(now: number): void {
    this.#end = now + turnMilliseconds;
    this.#isOpen = true;
    setImmediate(() => {
      this.#isOpen = false;
    });
  }
}
