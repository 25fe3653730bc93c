/**
 * A value now, or a promise of it: the memory store answers at once, other drivers later, and
 * the caller does not pay for a promise that is not needed.
 */

export type MaybePromise<T> = T | Promise<T>;

/** True for a promise or any other thenable: the test that keeps values on the fast path. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** `step(value)`, at once where the value is there, else as a promise. */
export function andThen<T, U>(
  value: MaybePromise<T>,
  step: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return isPromise(value) ? value.then(step) : step(value);
}
