/** The statements of the index of stored files that are the same in both drivers. */

import { andThen } from '../../maybe-promise.ts';
import type { FileIndex } from '../file-index.ts';
import { toDiskName, toFile } from './rows.ts';
import type { Sql } from './sql.ts';
import { escapeText } from './text-escape.ts';

/** `seq` orders the files by their names' first storage (R2). */
export function createFileStatements(sql: Sql): Pick<FileIndex, 'list' | 'forget' | 'replaced'> {
  const { schema } = sql;
  const list = `SELECT stored_name, disk_name, size,
      (SELECT last FROM ${schema}file_changes) AS change FROM ${schema}files`;
  const forget = `DELETE FROM ${schema}replaced_files
    WHERE disk_name IN (SELECT value FROM ${sql.itemsOf('$1')})`;
  return {
    list(storedName) {
      const rows =
        storedName === undefined
          ? sql.read(`${list} ORDER BY seq`, [])
          : sql.read(`${list} WHERE stored_name = $1`, [escapeText(storedName)]);
      return andThen(rows, (found) => {
        return { files: found.map(toFile), change: Number(found[0]?.['change'] ?? 0) };
      });
    },
    async forget(temporaryNames) {
      await sql.write('replaced_files', forget, [JSON.stringify(temporaryNames)]);
    },
    replaced: () =>
      andThen(sql.read(`SELECT disk_name FROM ${schema}replaced_files`, []), (rows) =>
        rows.map(toDiskName),
      ),
  };
}
