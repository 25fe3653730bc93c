/**
 * Results → JSON. A large result is serialised piece by piece: other requests run in between, and
 * it stops as soon as the budget of bytes is spent.
 */

import { type Answer, toAnswer } from '../http/answer-cache.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Budget } from './budget.ts';
import type { GraphqlResult } from './result.ts';
import { toRefusal } from './errors.ts';
import { sliceMilliseconds, type Scheduler } from '../scheduler.ts';

/** A result beside its JSON: `result` is a refusal where the JSON would have been too long. */
export interface SerializedResult {
  readonly result: GraphqlResult;
  readonly json: Answer;
}

/** A result up to this size is serialised at once: it takes less than a millisecond. */
const wholeBytesMax = 65_536;
/** Characters that are serialised at once; escaped they can be six times as many. */
const pieceLength = 65_536;

/**
 * The bytes that `JSON.stringify` would give, at once for a small result. Throws, or rejects with,
 * `overloaded` where all requests together hold too much.
 */
export function serialize(
  result: GraphqlResult,
  budget: Budget,
  scheduler: Scheduler,
): MaybePromise<SerializedResult> {
  if (budget.refusal !== undefined) return refused(budget);
  if (budget.bytes > wholeBytesMax) return serializeInPieces(result, budget, scheduler);
  const json = toAnswer(JSON.stringify(result));
  return budget.coversJson(json.length) ? { result, json } : refused(budget);
}

async function serializeInPieces(
  result: GraphqlResult,
  budget: Budget,
  scheduler: Scheduler,
): Promise<SerializedResult> {
  const pieces: Buffer[] = [];
  let text = '';
  const keep = (): boolean => {
    const piece = Buffer.from(text);
    text = '';
    pieces.push(piece);
    return budget.coversJson(piece.length);
  };
  // Yield first: the execution has used this iteration of the loop.
  let end = 0;
  for (const piece of toPieces(result)) {
    text += piece;
    if (text.length < pieceLength) continue;
    if (!keep()) return refused(budget);
    if (performance.now() < end) continue;
    await scheduler.yield();
    end = performance.now() + sliceMilliseconds;
  }
  return keep() ? { result, json: Buffer.concat(pieces) } : refused(budget);
}

/** The refusal that replaces a result over its budget. */
function refused({ refusal }: Budget): SerializedResult {
  const result = toBudgetRefusal(refusal);
  return { result, json: JSON.stringify(result) };
}

/** A refusal for too large a request as a result; any other refusal is thrown. */
export function toBudgetRefusal(refusal: Budget['refusal']): GraphqlResult {
  if (refusal?.code !== 'content_too_large') throw refusal ?? new Error('nothing was refused');
  return { errors: [toRefusal(refusal)] };
}

/** The JSON of any value of a result, in pieces of a bounded length. */
export function* toPieces(value: unknown): Generator<string> {
  if (typeof value === 'string') yield* toPiecesOfText(value);
  else if (lengthOf(value, pieceLength) <= pieceLength) yield JSON.stringify(value);
  else {
    const isList = Array.isArray(value);
    let separator = isList ? '[' : '{';
    // Nothing else is that long.
    for (const [name, member] of isList ? value.entries() : Object.entries(value as object)) {
      if (member === undefined) continue;
      yield isList ? separator : `${separator}${JSON.stringify(name)}:`;
      yield* toPieces(member);
      separator = ',';
    }
    yield isList ? ']' : '}';
  }
}

function* toPiecesOfText(text: string): Generator<string> {
  if (text.length <= pieceLength) {
    yield JSON.stringify(text);
    return;
  }
  yield '"';
  let start = 0;
  while (start < text.length) {
    let end = start + pieceLength;
    // Not between the halves of a surrogate pair: alone they would be escaped.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    yield JSON.stringify(text.slice(start, end)).slice(1, -1);
    start = end;
  }
  yield '"';
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** What a number, a name's quotes or a pair of brackets takes, about. */
const signLength = 8;

/** Characters of the JSON without its escapes, about; not counted on where there are over `max`. */
function lengthOf(value: unknown, max: number): number {
  if (typeof value === 'string') return value.length + signLength;
  if (typeof value !== 'object' || value === null) return signLength;
  let length = signLength;
  if (Array.isArray(value)) {
    for (const item of value) {
      length += lengthOf(item, max - length);
      if (length > max) break;
    }
    return length;
  }
  for (const name in value) {
    length += name.length + lengthOf((value as Record<string, unknown>)[name], max - length);
    if (length > max) break;
  }
  return length;
}
