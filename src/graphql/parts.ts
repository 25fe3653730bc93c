/**
 * Executes an operation that asks for one long list part by part, and serialises each part before
 * the next is executed. So the result, and a promise for each record, need not be kept meanwhile.
 */

import { type GraphQLResolveInfo, Kind } from 'graphql';
import type { MaybePromise } from '../maybe-promise.ts';
import { Pace, type Scheduler } from '../scheduler.ts';
import type { Budget } from './budget.ts';
import { errorsMax, type GraphqlError } from './errors.ts';
import type { GraphqlResult } from './result.ts';
import {
  JsonBytes,
  refused,
  type SerializedResult,
  toJsonOfItems,
  toPiecesOfItems,
  wholeBytesMax,
} from './serialize.ts';
import { sliceLength } from './slices.ts';

/** The records of the list. */
export class Parts {
  readonly #list: readonly unknown[];
  #end = 0;

  constructor(list: readonly unknown[]) {
    this.#list = list;
  }

  get hasMore(): boolean {
    return this.#end < this.#list.length;
  }

  /** The number of records before the part that was taken last. */
  get start(): number {
    return this.#end - sliceLength;
  }

  next(): readonly unknown[] {
    this.#end += sliceLength;
    return this.#list.slice(this.start, this.#end);
  }
}

/** Whether this root field is all that the operation asks for. */
export function isOnlyField({ operation }: Pick<GraphQLResolveInfo, 'operation'>): boolean {
  const { selections } = operation.selectionSet;
  return selections.length === 1 && selections[0]?.kind === Kind.FIELD;
}

export interface PartsOptions {
  readonly parts: Parts;
  /** Executes the operation with the next part. */
  readonly run: () => MaybePromise<GraphqlResult>;
  readonly toExtensions: () => GraphqlResult['extensions'];
  readonly budget: Budget;
  readonly scheduler: Scheduler;
}

/**
 * Returns what an execution with the whole list would give, beside the JSON with an empty list.
 * `first`: the result with the first part. Rejects as `serialize` does.
 */
export async function serializeParts(
  first: GraphqlResult,
  { parts, run, toExtensions, budget, scheduler }: PartsOptions,
): Promise<SerializedResult> {
  const json = new JsonBytes(budget);
  const pace = new Pace(scheduler);
  const errors: GraphqlError[] = [];
  const toWhole = (data: GraphqlResult['data']): SerializedResult['result'] => {
    const extensions = toExtensions();
    const found = errors.length > 0 && { errors: errors.slice(0, errorsMax) };
    return { ...found, ...(data !== undefined && { data }), ...(extensions && { extensions }) };
  };
  let charged = 0;
  // The first part has used this iteration of the loop.
  await scheduler.yield();
  for (let result = first; ; result = await run()) {
    for (const error of result.errors ?? []) errors.push(toMoved(error, parts.start));
    const [list] = Object.values(result.data ?? {});
    if (budget.refusal !== undefined) return refused(budget);
    // After an error in a field that must not be null, the whole list is null.
    if (!Array.isArray(list)) {
      const failed = toWhole(result.data);
      return { result: failed, json: JSON.stringify(failed) };
    }
    const isShort = budget.bytes - charged <= wholeBytesMax;
    charged = budget.bytes;
    for (const text of isShort ? [toJsonOfItems(list)] : toPiecesOfItems(list)) {
      if (!json.add(text)) return refused(budget);
      if (json.isBetweenPieces) await pace.wait();
    }
    if (!parts.hasMore) break;
    json.add(',');
    await pace.wait();
  }
  const [name = ''] = Object.keys(first.data ?? {});
  const result = toWhole({ [name]: [] });
  const around = JSON.stringify(result);
  // Nothing after `data` has an empty list.
  const middle = around.lastIndexOf('[]') + 1;
  json.add(around.slice(middle));
  const bytes = json.end(around.slice(0, middle));
  return bytes === undefined ? refused(budget) : { result, json: bytes };
}

/** The error with its path in the whole list, which begins with the field and an index. */
function toMoved(error: GraphqlError, start: number): GraphqlError {
  const [field, index, ...rest] = error.path ?? [];
  if (field === undefined || typeof index !== 'number') return error;
  return { ...error, path: [field, start + index, ...rest] };
}
