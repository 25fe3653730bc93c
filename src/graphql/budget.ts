/**
 * What one request may cost, counted while it runs. The schema has a cycle (`author { posts {
 * author …`): a short query could ask for millions of objects, and no limit on the text sees it.
 */

export interface Budget {
  readonly max: number;
  /** What was spent; it may be a little beyond `max`, once. */
  readonly spent: number;
  /** From the first refusal on; it never goes back. */
  readonly exceeded: boolean;
  /** Throws a BudgetError where less than `units` is left, and from then on always. */
  charge(units: number): void;
}

/** The request asked for more than its budget. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
}

/** A budget of `max` objects. */
export function createBudget(max: number): Budget {
  return new CountedBudget(max);
}

class CountedBudget implements Budget {
  readonly max: number;
  spent = 0;
  #refusal: Error | undefined;

  constructor(max: number) {
    this.max = max;
  }

  get exceeded(): boolean {
    return this.#refusal !== undefined;
  }

  charge(units: number): void {
    this.spent += units;
    if (this.spent <= this.max) return;
    // One error for all: thousands of resolvers may run into it before the execution is through.
    this.#refusal ??= new BudgetError(`The request asks for more than ${this.max} objects.`);
    throw this.#refusal;
  }
}
