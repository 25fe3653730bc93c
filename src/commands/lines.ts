/** The lines of an input, of which one is in memory. */

import type { Readable } from 'node:stream';
import { AppError } from '../errors.ts';

export interface Line {
  /** From 1 on. */
  readonly number: number;
  readonly bytes: Buffer;
}

const lineFeed = 0x0a;

/** Yields the lines that are not blank. Throws for one that is longer than `bytesMax`. */
export async function* readLines(
  input: Readable,
  bytesMax: number,
): AsyncGenerator<Line, void, undefined> {
  let number = 1;
  let begun: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer): void => {
    begun.push(part);
    length += part.length;
    if (length > bytesMax) throw atLine(number, `is longer than ${bytesMax} bytes`);
  };
  const take = (): Buffer => {
    const [first = Buffer.alloc(0), ...others] = begun;
    const bytes = others.length === 0 ? first : Buffer.concat(begun);
    [begun, length] = [[], 0];
    return bytes;
  };
  for await (const chunk of input as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end; (end = chunk.indexOf(lineFeed, start)) !== -1; start = end + 1) {
      add(chunk.subarray(start, end));
      const bytes = take();
      if (!isBlank(bytes)) yield { number, bytes };
      number += 1;
    }
    add(chunk.subarray(start));
  }
  const bytes = take();
  if (!isBlank(bytes)) yield { number, bytes };
}

function isBlank(bytes: Buffer): boolean {
  return bytes.length < 80 && bytes.toString().trim() === '';
}

export function atLine(number: number, reason: string, cause?: unknown): Error {
  return new Error(`Line ${number}: ${reason}.`, { cause });
}

/** Calls `work`, and names the line for what it refuses. */
export async function inLine<T>(number: number, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { errors = [] } = error.facts;
    const reasons = errors.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`.trim());
    throw atLine(number, reasons.join(', ') || error.message.replace(/\.$/, ''), error);
  }
}
