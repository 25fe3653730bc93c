/**
 * A value, or a promise of it. The memory store returns values, other drivers promises. Values
 * avoid the cost of a promise.
 */

export type MaybePromise<T> = T | Promise<T>;

/** True for a promise or another thenable. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Returns `step(value)`, as a promise only if `value` is one. */
export function andThen<T, U>(
  value: MaybePromise<T>,
  step: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return isPromise(value) ? value.then(step) : step(value);
}

/** Returns all values, as a promise only if one of them is one. */
export function allOf<T>(values: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> {
  return values.some(isPromise) ? Promise.all(values) : (values as readonly T[]); // none is one
}
