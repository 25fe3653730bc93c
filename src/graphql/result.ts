/** Results as clients get them. */

import type { GraphqlError } from './errors.ts';

/** What an operation answers. Without `data`: it did not run. */
export interface GraphqlResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphqlError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}
