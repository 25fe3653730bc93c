/**
 * How much memory the records may take. What is counted is a sum, and at least what V8 takes for
 * them: usually a few times as much, for a client chooses the shapes.
 */

import { AppError } from '../errors.ts';
import type { Json, JsonObject } from './model.ts';

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

/** A number that is no small integer. */
const numberBytes = 16;
/** A string without its characters. */
const stringBytes = 24;
/** An array without its items, an object without its members. */
const containerBytes = 64;
const itemBytes = 8;
/** Where no two objects have the same names, each member brings a description of its own. */
const memberBytes = 128;
/** The table of members that are named like indices, or the gaps in an array of them. */
const indexedBytes = 192;

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

/** What an open document takes. Its depth was bounded before it came here (R10). */
export interface DocumentCost {
  bytes: number;
  /** It has members that are named like indices: made otherwise than by a parser they take more. */
  isIndexed: boolean;
}

export function measureDocument(document: Json): DocumentCost {
  const cost = { bytes: recordBytes, isIndexed: false };
  addValue(document, cost);
  return cost;
}

function addValue(value: Json, cost: DocumentCost): void {
  if (typeof value === 'string') cost.bytes += stringBytes + 2 * value.length;
  else if (typeof value !== 'object' || value === null) cost.bytes += numberBytes;
  else if (Array.isArray(value)) {
    cost.bytes += containerBytes + itemBytes * value.length;
    for (const item of value as readonly Json[]) addValue(item, cost);
  } else addMembers(value as JsonObject, cost);
}

function addMembers(object: JsonObject, cost: DocumentCost): void {
  const names = Object.keys(object);
  cost.bytes += containerBytes + memberBytes * names.length;
  // Names that are like indices come first (ECMA-262, OrdinaryOwnPropertyKeys).
  const first = names[0]?.charCodeAt(0) ?? 0;
  if (first >= 0x30 && first <= 0x39) {
    cost.bytes += indexedBytes;
    cost.isIndexed = true;
  }
  for (const name of names) {
    cost.bytes += 2 * name.length;
    addValue(object[name] as Json, cost);
  }
}
