/** Wrappers of the engine and the subscriptions that report to a `GraphqlWatch`. */

import { AppError } from '../errors.ts';
import { isPromise } from '../maybe-promise.ts';
import type { Engine } from './engine.ts';
import type { Subscriptions } from './events/subscriptions.ts';
import type { SerializedResult } from './serialize.ts';
import type { GraphqlWatch, Outcome } from './watch.ts';

/** Reports each operation that the engine runs. */
export function watchEngine(engine: Engine, watch: GraphqlWatch): Engine {
  return {
    ...engine,
    prepare(request) {
      const startedAt = performance.now();
      const prepared = engine.prepare(request);
      if (prepared.kind === 'refused') {
        watch.operation('unknown', 'refused', performance.now() - startedAt);
      }
      return prepared;
    },
    execute(operation, scope, showCost) {
      const startedAt = performance.now();
      const tell = (outcome: Outcome): void =>
        watch.operation(operation.operation, outcome, performance.now() - startedAt);
      const fail = (error: unknown): never => {
        tell(outcomeOfError(error));
        throw error;
      };
      const succeed = (serialized: SerializedResult): SerializedResult => {
        tell(outcomeOf(serialized.result));
        return serialized;
      };
      try {
        const serialized = engine.execute(operation, scope, showCost);
        return isPromise(serialized) ? serialized.then(succeed, fail) : succeed(serialized);
      } catch (error) {
        return fail(error);
      }
    },
  };
}

/** Reports each subscription when it starts. */
export function watchSubscriptions(inner: Subscriptions, watch: GraphqlWatch): Subscriptions {
  return {
    ...inner,
    join(operation, member) {
      const startedAt = performance.now();
      let outcome: Outcome = 'ok';
      try {
        return inner.join(operation, member);
      } catch (error) {
        outcome = outcomeOfError(error);
        throw error;
      } finally {
        watch.operation('subscription', outcome, performance.now() - startedAt);
      }
    },
  };
}

function outcomeOf({ data, errors }: SerializedResult['result']): Outcome {
  if (errors === undefined) return 'ok';
  return data === undefined ? 'refused' : 'error';
}

/** Expected errors count as `refused`. */
function outcomeOfError(error: unknown): Outcome {
  return error instanceof AppError ? 'refused' : 'error';
}
