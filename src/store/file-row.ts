/** A row of the table of files, which both durable drivers write alike → the record. */

import { unescapeText } from './text-escape.ts';
import type { WrittenFile } from './uploads.ts';

type Row = Readonly<Record<string, unknown>>;

export function toFile(row: Row): WrittenFile {
  return {
    storedName: unescapeText(String(row['stored_name'])),
    temporaryName: toDiskName(row),
    size: Number(row['size']),
  };
}

/** Also of a row of the table of replaced files. */
export function toDiskName(row: Row): string {
  return String(row['disk_name']);
}
