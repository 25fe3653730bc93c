/**
 * How much memory the records may take. What is counted is a sum, and at least what V8 takes for
 * them: usually a few times as much, for a client chooses the shapes.
 */

import { AppError } from '../errors.ts';
import type { JsonMeasure } from '../json-measure.ts';
import type { Json } from './model.ts';

export type ByteBudget = ReturnType<typeof createByteBudget>;

export function createByteBudget(bytesMax: number) {
  let left = bytesMax;
  return {
    /** Throws `storage_full` where less is left: then nothing is taken. Less than 0 gives back. */
    take(bytes: number): void {
      if (bytes > left && bytes > 0) {
        throw new AppError('storage_full', 'The store has no room for more.');
      }
      left -= bytes;
    },
  };
}

/** A record without its texts: the object, its id, its places in maps and lists. */
const recordBytes = 400;

/**
 * The text in memory of its own: what was cut out of a longer text, or put together, keeps that
 * alive (V8 does so from 13 characters on).
 */
export function copyText(text: string): string {
  return text.length < 13 ? text : (JSON.parse(JSON.stringify(text)) as string);
}

/** The document in memory of its own, as small as V8 makes it: what is counted is for this. */
export function copyDocument<T extends Json>(document: T): T {
  return JSON.parse(JSON.stringify(document)) as T;
}

/** A record with texts of its client's. A character takes at most two bytes. */
export function textRecordBytes(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, recordBytes);
}

/** A record that is an open document. */
export function documentBytes({ bytes }: JsonMeasure): number {
  return recordBytes + bytes;
}
