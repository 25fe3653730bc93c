/** The result of an operation. */

import type { Outcome } from '../watch/service-metrics.ts';
import type { GraphqlError } from './errors.ts';

/** Without `data` the operation did not run. */
export interface GraphqlResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphqlError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** True if every root field is null, or there is no data. */
export function isEmpty(data: GraphqlResult['data']): boolean {
  return Object.values(data ?? {}).every((value) => value === null);
}

/** For the metrics. */
export function outcomeOf({ data, errors }: GraphqlResult): Outcome {
  if (errors === undefined) return 'ok';
  return data === undefined ? 'refused' : 'error';
}
