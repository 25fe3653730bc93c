/** Results as clients get them. */

import type { GraphqlError } from './errors.ts';

/** What an operation answers. Without `data`: it did not run. */
export interface GraphqlResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphqlError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** True where no field of the root has a value. */
export function isEmpty(data: GraphqlResult['data']): boolean {
  return Object.values(data ?? {}).every((value) => value === null);
}
