/** The statements of the index of stored files that are the same in both drivers. */

import { andThen } from '../../maybe-promise.ts';
import type { DurableFileIndex } from '../file-index.ts';
import { toFile } from './rows.ts';
import type { Sql } from './sql.ts';
import { escapeText } from './text-escape.ts';

/** `seq` orders the files by their names' first storage (R2). */
export function createFileStatements(
  sql: Sql,
): Pick<DurableFileIndex, 'list' | 'remove' | 'folderId'> {
  const { schema } = sql;
  const list = `SELECT stored_name, disk_name, size FROM ${schema}files`;
  return {
    list: (storedName) =>
      andThen(
        storedName === undefined
          ? sql.read(`${list} ORDER BY seq`, [])
          : sql.read(`${list} WHERE stored_name = $1`, [escapeText(storedName)]),
        (rows) => rows.map(toFile),
      ),
    async remove({ temporaryName }) {
      const text = `DELETE FROM ${schema}files WHERE disk_name = $1`;
      await sql.write('files', text, [temporaryName]);
    },
    async folderId(claimed) {
      const text = `INSERT INTO ${schema}upload_folder (id) VALUES ($1) ON CONFLICT DO NOTHING`;
      if (claimed !== undefined) await sql.write('upload_folder', text, [claimed]);
      const [row] = await sql.read(`SELECT id FROM ${schema}upload_folder`, []);
      return row && String(row['id']);
    },
  };
}
