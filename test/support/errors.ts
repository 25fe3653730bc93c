/** What a test expects to be thrown. */

import { AppError } from '../../dist/errors.js';

/** True for the error of the service with this code. */
export function withCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof AppError && error.code === code;
}
