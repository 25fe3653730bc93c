/** What makes two subscriptions the same, as a short text: document, operation name, variables. */

import { createHash } from 'node:crypto';
import type { ReadyOperation } from '../engine.ts';

export interface SubscriptionKeys {
  of(operation: ReadyOperation): string;
}

/**
 * The engine keeps one document per text, so that the object can stand for the text; where it was
 * dropped and parsed anew in between, two groups do the work of one, and nothing is wrong.
 */
export function createSubscriptionKeys(): SubscriptionKeys {
  const numbers = new WeakMap<object, number>();
  let last = 0;
  const numberOf = (document: object): number => {
    let number = numbers.get(document);
    if (number === undefined) {
      last += 1;
      number = last;
      numbers.set(document, number);
    }
    return number;
  };
  return {
    of({ document, operationName = '', variables = {} }) {
      const number = numberOf(document);
      const values = JSON.stringify(variables);
      // Most have neither, and what is long must not be kept as a key.
      if (operationName === '' && values === '{}') return String(number);
      const hash = createHash('sha256').update(JSON.stringify([operationName, values]));
      return `${number} ${hash.digest('base64')}`;
    },
  };
}
