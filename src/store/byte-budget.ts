/** How much memory the records may take, counted roughly and cheaply: a sum, no measuring. */

import { AppError } from '../errors.ts';
import type { Json } from './model.ts';

export interface ByteBudget {
  /** Throws `storage_full` where less is left: then nothing is taken. Less than 0 gives back. */
  take(bytes: number): void;
}

export function createByteBudget(bytesMax: number): ByteBudget {
  let left = bytesMax;
  return {
    take(bytes) {
      if (bytes > left && bytes > 0) {
        throw new AppError('storage_full', 'The store has no room for more.');
      }
      left -= bytes;
    },
  };
}

/** A record without its texts: the object, its id, its places in maps and lists. */
const recordBytes = 400;
/** A value or member of a JSON document. */
const nodeBytes = 48;

/** A record with texts of its client's. A character takes at most two bytes. */
export function textRecordBytes(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, recordBytes);
}

/** An open document. Its depth was bounded before it came here (R10). */
export function documentBytes(document: Json): number {
  return recordBytes + jsonBytes(document);
}

function jsonBytes(value: Json): number {
  if (typeof value === 'string') return nodeBytes + 2 * value.length;
  if (typeof value !== 'object' || value === null) return nodeBytes;
  let sum = nodeBytes;
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) sum += jsonBytes(item);
    return sum;
  }
  for (const [key, member] of Object.entries(value)) sum += 2 * key.length + jsonBytes(member);
  return sum;
}
