/** Results → JSON. A long list becomes text slice by slice, so that it holds up nobody else. */

import { setImmediate } from 'node:timers/promises';
import { type Answer, toAnswer } from '../../http/answer-cache.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { GraphqlResult } from '../engine.ts';
import { sliceLength } from '../slices.ts';

/** The bytes that `JSON.stringify` would give; at once unless a field of `data` is a long list. */
export function serialize(result: GraphqlResult): MaybePromise<Answer> {
  const isLong = Object.values(result.data ?? {}).some(isLongList);
  return isLong ? serializeInSlices(result) : toAnswer(JSON.stringify(result));
}

function isLongList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > sliceLength;
}

async function serializeInSlices(result: GraphqlResult): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (const piece of toPieces(result)) {
    pieces.push(Buffer.from(piece));
    await setImmediate();
  }
  return Buffer.concat(pieces);
}

/** Members in the order of `result`; what is not a long list is one piece. */
function* toPieces(result: GraphqlResult): Generator<string> {
  let separator = '{';
  for (const [name, value] of Object.entries(result)) {
    yield `${separator}${JSON.stringify(name)}:`;
    if (name === 'data') yield* toPiecesOfData(result.data ?? {});
    else yield JSON.stringify(value);
    separator = ',';
  }
  yield '}';
}

function* toPiecesOfData(data: NonNullable<GraphqlResult['data']>): Generator<string> {
  let separator = '{';
  for (const [name, value] of Object.entries(data)) {
    yield `${separator}${JSON.stringify(name)}:`;
    if (isLongList(value)) yield* toPiecesOfList(value);
    else yield JSON.stringify(value);
    separator = ',';
  }
  yield '}';
}

function* toPiecesOfList(list: readonly unknown[]): Generator<string> {
  for (let start = 0; start < list.length; start += sliceLength) {
    const items = JSON.stringify(list.slice(start, start + sliceLength)).slice(1, -1);
    yield `${start === 0 ? '[' : ','}${items}`;
  }
  yield ']';
}
