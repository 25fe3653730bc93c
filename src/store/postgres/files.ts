/**
 * The index of stored files in PostgreSQL, for all nodes. A commit is a function in the database,
 * one at a time, so that the limits on their number and bytes apply across all nodes.
 */

import {
  type DurableFileIndex,
  type FileLimits,
  type ReplacedFile,
  tooManyFiles,
} from '../file-index.ts';
import { createFileStatements } from '../sql/ports.ts';
import type { Sql } from '../sql/statements.ts';
import { escapeText } from '../sql/rows.ts';

export function createFileIndex(sql: Sql, limits: FileLimits): DurableFileIndex {
  const { filesMax, bytesMax } = limits;
  const store = 'SELECT inkwell.store_files($1::text::json, $2, $3)::text AS replaced';
  return {
    ...createFileStatements(sql),
    async commit(files) {
      const entries = files.map(({ storedName, temporaryName, size }, at) => {
        return { at, stored_name: escapeText(storedName), disk_name: temporaryName, size };
      });
      const values = [JSON.stringify(entries), filesMax, bytesMax];
      const replaced = (await sql.write('files', store, values))[0]?.['replaced'];
      if (typeof replaced !== 'string') throw tooManyFiles(limits);
      return JSON.parse(replaced) as ReplacedFile[]; // as the function writes it
    },
  };
}
