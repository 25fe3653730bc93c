/**
 * Serialises results. A large result is serialised in pieces, so that other requests run in
 * between, and so that it stops when the budget of bytes is exceeded.
 */

import { type JsonBody, toJsonBody } from '../http/response-cache.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Budget } from './budget.ts';
import type { GraphqlResult } from './result.ts';
import { toRefusal } from './errors.ts';
import { Pace, type Scheduler } from '../scheduler.ts';

/** A result and its JSON. If the JSON would exceed the budget, both are a refusal. */
export interface SerializedResult {
  readonly result: GraphqlResult;
  readonly json: JsonBody;
}

/** Up to this size a result is serialised in one call, which takes less than a millisecond. */
export const wholeBytesMax = 65_536;
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
  const json = toJsonBody(JSON.stringify(result));
  return budget.coversJson(json.length) ? { result, json } : refused(budget);
}

async function serializeInPieces(
  result: GraphqlResult,
  budget: Budget,
  scheduler: Scheduler,
): Promise<SerializedResult> {
  const json = new JsonBytes(budget);
  const pace = new Pace(scheduler);
  // The execution has used this iteration of the loop.
  await scheduler.yield();
  for (const text of toPieces(result)) {
    if (!json.add(text)) return refused(budget);
    if (json.isBetweenPieces) await pace.wait();
  }
  const bytes = json.end();
  return bytes === undefined ? refused(budget) : { result, json: bytes };
}

/** JSON that is encoded in pieces as it grows. */
export class JsonBytes {
  readonly #budget: Budget;
  readonly #pieces: Buffer[] = [];
  #text = '';

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  get isBetweenPieces(): boolean {
    return this.#text === '';
  }

  /** Returns false if the budget does not cover it. */
  add(text: string): boolean {
    this.#text += text;
    return this.#text.length < pieceLength || this.#encode();
  }

  /** Returns all of it, after `head`; undefined if the budget does not cover it. */
  end(head = ''): Buffer | undefined {
    return this.#encode() ? Buffer.concat([Buffer.from(head), ...this.#pieces]) : undefined;
  }

  #encode(): boolean {
    const piece = Buffer.from(this.#text);
    this.#text = '';
    this.#pieces.push(piece);
    return this.#budget.coversJson(piece.length);
  }
}

/** The refusal that replaces a result over its budget. */
export function refused({ refusal }: Budget): SerializedResult {
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
  else if (Array.isArray(value)) {
    yield '[';
    yield* toPiecesOfItems(value);
    yield ']';
  } else {
    let separator = '{';
    // No other value is that long.
    for (const [name, member] of Object.entries(value as object)) {
      if (member === undefined) continue;
      yield `${separator}${JSON.stringify(name)}:`;
      yield* toPieces(member);
      separator = ',';
    }
    yield '}';
  }
}

/** Yields the same for the items of a list, without its brackets. Short items are one piece. */
export function* toPiecesOfItems(list: readonly unknown[]): Generator<string> {
  let separator = '';
  let short: unknown[] = [];
  let length = 0;
  for (const item of list) {
    const ownLength = lengthOf(item, pieceLength);
    if (short.length > 0 && length + ownLength > pieceLength) {
      yield `${separator}${toJsonOfItems(short)}`;
      [separator, short, length] = [',', [], 0];
    }
    if (ownLength > pieceLength) {
      yield separator;
      separator = ',';
      yield* toPieces(item);
    } else {
      short.push(item);
      length += ownLength;
    }
  }
  if (short.length > 0) yield `${separator}${toJsonOfItems(short)}`;
}

/** The JSON of a list without its brackets, in one call. */
export function toJsonOfItems(list: readonly unknown[]): string {
  return JSON.stringify(list).slice(1, -1);
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
