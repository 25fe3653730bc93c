/** A limit on the memory of records. */

import { AppError } from '../errors.ts';

/** What it returns throws `storage_full` if fewer bytes are left. Less than 0 gives back. */
export function createTake(bytesMax: number): (bytes: number) => void {
  let left = bytesMax;
  return (bytes) => {
    if (bytes > left && bytes > 0) {
      throw new AppError('storage_full', 'The store has no room for more.');
    }
    left -= bytes;
  };
}

/** A record without its texts: the object, its id, its entries in maps and lists. */
const recordBytes = 400;

/**
 * Copies the text, because V8 keeps the whole source alive for a slice or a concatenation (of 13
 * characters or more).
 */
export function copyText(text: string): string {
  return text.length < 13 ? text : Buffer.from(text).toString();
}

/** The members that are given, with copies of the texts among them. */
export function copyTexts<T extends object>(members: T): T {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  const copied = given.map(([name, value]: [string, unknown]) => {
    return [name, typeof value === 'string' ? copyText(value) : value];
  });
  return Object.fromEntries(copied) as T; // the same members
}

/** The memory of a record with client texts. A character takes at most two bytes. */
export function textRecordBytes(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, recordBytes);
}
