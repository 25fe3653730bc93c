/** The result of an operation, and its JSON. */

import type { AppError } from '../errors.ts';
import type { Outcome } from '../watch/service-metrics.ts';
import type { Budget } from './budget.ts';
import { type GraphqlError, toRefusal } from './errors.ts';

/** Without `data` the operation did not run. */
export interface GraphqlResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphqlError[];
}

/** A result and its JSON. If it exceeds the budget, both are a refusal. */
export interface SerializedResult {
  readonly result: GraphqlResult;
  readonly json: string;
  /** The error of a refusal because of the server's load: the request may succeed later. */
  readonly overload?: AppError;
}

/** True if every root field is null, or there is no data. */
export function isEmpty(data: GraphqlResult['data']): boolean {
  return Object.values(data ?? {}).every((value) => value === null);
}

/**
 * Serialises in one call, right after the execution: a result that waited for its turn to become
 * JSON would be copied by the collector meanwhile. The budget bounds the time that it takes.
 */
export function serialize(result: GraphqlResult, budget: Budget): SerializedResult {
  if (budget.refusal === undefined) {
    const json = JSON.stringify(result);
    if (budget.coversJson(Buffer.byteLength(json))) return { result, json };
  }
  const { refusal } = budget;
  if (refusal === undefined) throw new Error('the budget refused without a reason');
  const refused = toSerialized({ errors: [toRefusal(refusal)] });
  return refusal.code === 'overloaded' ? { ...refused, overload: refusal } : refused;
}

/** For the metrics. */
export function outcomeOf({ data, errors }: GraphqlResult): Outcome {
  if (errors === undefined) return 'ok';
  return data === undefined ? 'refused' : 'error';
}

/** Serialises a result that no budget limits: it has errors only. */
export function toSerialized(result: GraphqlResult): SerializedResult {
  return { result, json: JSON.stringify(result) };
}
