/**
 * Serialises results. A large result is serialised in pieces, so that other requests run in
 * between, and so that it stops when the budget of bytes is exceeded.
 */

import { type Answer, toAnswer } from '../http/answer-cache.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Budget } from './budget.ts';
import type { GraphqlResult } from './result.ts';
import { toRefusal } from './errors.ts';
import { sliceMilliseconds, type Scheduler } from '../scheduler.ts';

/** A result and its JSON. If the JSON would exceed the budget, both are a refusal. */
export interface SerializedResult {
  readonly result: GraphqlResult;
  readonly json: Answer;
}

/** Up to this size a result is serialised in one call, which takes less than a millisecond. */
const wholeBytesMax = 65_536;
/** Characters serialised in one call; with escapes they become up to six times as many. */
const pieceLength = 65_536;

/**
 * Serialises as `JSON.stringify` does; without a promise for a small result. Throws, or rejects
 * with, `overloaded` if all requests together hold too much memory.
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
  // `end` is 0 so that it yields first: the execution has used this iteration of the loop.
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

/** Returns the result for a request that asked for too much. Throws any other refusal. */
export function toBudgetRefusal(refusal: Budget['refusal']): GraphqlResult {
  if (refusal?.code !== 'content_too_large') throw refusal ?? new Error('nothing was refused');
  return { errors: [toRefusal(refusal)] };
}

/** Yields the JSON of a value in pieces of a bounded length. */
export function* toPieces(value: unknown): Generator<string> {
  if (typeof value === 'string') yield* toPiecesOfText(value);
  else if (lengthOf(value, pieceLength) <= pieceLength) yield JSON.stringify(value);
  else {
    const isList = Array.isArray(value);
    let separator = isList ? '[' : '{';
    // Only arrays and objects get here: other values are shorter.
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
    // A cut between the halves of a surrogate pair would make JSON.stringify escape both.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    yield JSON.stringify(text.slice(start, end)).slice(1, -1);
    start = end;
  }
  yield '"';
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** Approximate length of a number, of the quotes of a name, or of a pair of brackets. */
const signLength = 8;

/** Approximate length of the JSON without escapes. Stops counting beyond `max`. */
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
