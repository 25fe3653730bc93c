/**
 * What one request may cost, counted while it runs. The schema has a cycle (`author { posts {
 * author …`): a short query could ask for millions of objects, and no limit on the text sees it.
 */

export interface Budget {
  readonly max: number;
  /** What was asked for so far, also what was refused. */
  readonly spent: number;
  /** From the first refusal on; it never goes back. */
  readonly exceeded: boolean;
  /** Takes `units`; false where less is left, and from then on always. */
  covers(units: number): boolean;
  /** As `covers`, but throws a BudgetError in the place of false. */
  charge(units: number): void;
  /** Starts again, for the next event of a subscription. */
  renew(): void;
}

/** The request asked for more than its budget. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
  /** graphql-js gives every error a place, at a cost; one that has a path it takes as it is. */
  readonly path: readonly string[] = [];
}

/** A budget of `max` objects. */
export function createBudget(max: number): Budget {
  return new CountedBudget(max);
}

class CountedBudget implements Budget {
  readonly max: number;
  spent = 0;
  /** One error for all: many resolvers may run into it before the execution is through. */
  #refusal: BudgetError | undefined;

  constructor(max: number) {
    this.max = max;
  }

  get exceeded(): boolean {
    return this.spent > this.max;
  }

  covers(units: number): boolean {
    // Never less than before: from the first refusal on everything is refused.
    this.spent += units;
    return this.spent <= this.max;
  }

  charge(units: number): void {
    if (this.covers(units)) return;
    throw (this.#refusal ??= new BudgetError(`The request asks for over ${this.max} objects.`));
  }

  renew(): void {
    this.spent = 0;
  }
}
