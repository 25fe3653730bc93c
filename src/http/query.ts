/** Query strings, parsed no further than anybody sends (R47). */

import { AppError } from '../errors.ts';

/** Unknown parameters included: each takes as long to parse as a small request. */
const parametersMax = 32;

/** Fails with `invalid_parameter`. */
export function parseQuery(query: string): URLSearchParams {
  if (query.split('&', parametersMax + 1).length <= parametersMax)
    return new URLSearchParams(query);
  const message = `A query string has at most ${parametersMax} parameters.`;
  throw new AppError('invalid_parameter', message);
}
