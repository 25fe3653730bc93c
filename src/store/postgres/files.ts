/**
 * The index of stored files in PostgreSQL, for all nodes. A commit is a function in the database:
 * it locks the row that counts commits before it reads the files, so that the limits on their
 * number and bytes apply across all nodes.
 */

import { type FileIndex, type FileIndexOptions, removableMax, toRanges } from '../file-index.ts';
import { createFileStatements } from '../sql/files.ts';
import { toDiskName } from '../sql/rows.ts';
import type { PostgresContext } from './pool.ts';
import { sql } from './connection.ts';
import { escapeText } from '../sql/text-escape.ts';
import { tooManyFiles } from '../uploads.ts';

export function createFileIndex(
  { pool, sql: statements }: Pick<PostgresContext, 'pool' | 'sql'>,
  { filesMax, bytesMax, graceSeconds }: FileIndexOptions,
): FileIndex {
  return {
    ...createFileStatements(statements),
    async commit(files) {
      const entries = files.map(({ storedName, temporaryName, size }, at) => {
        return { at, stored_name: escapeText(storedName), disk_name: temporaryName, size };
      });
      const [row] = await pool.write(
        sql`SELECT inkwell.commit_files(
          ${JSON.stringify(entries)}::text::json, ${filesMax}, ${bytesMax}, ${graceSeconds}
        ) AS replaced`,
      );
      const replaced = Number(row?.['replaced']);
      if (replaced < 0) throw tooManyFiles(filesMax, bytesMax);
      return replaced;
    },
    async remove({ temporaryName }) {
      // Locks the row that counts commits first, as a commit does.
      await pool.write(
        sql`WITH turn AS (
            UPDATE inkwell.file_changes SET last = last + 1 RETURNING last
          ), gone AS (
            DELETE FROM inkwell.files USING turn WHERE disk_name = ${temporaryName}
            RETURNING disk_name, change, last
          )
          INSERT INTO inkwell.replaced_files
          SELECT disk_name, change, last, now() + make_interval(secs => ${graceSeconds}) FROM gone`,
      );
    },
    async abandon(temporaryNames) {
      const rows = await pool.write(
        sql`SELECT inkwell.abandon_files(
          ${JSON.stringify(temporaryNames)}::text::json, ${graceSeconds}) AS disk_name`,
      );
      return rows.map(toDiskName);
    },
    async removable(reading) {
      const ranges = JSON.stringify(toRanges(reading));
      const rows = await pool.write(
        sql`WITH held AS (
            UPDATE inkwell.replaced_files
            SET remove_at = now() + make_interval(secs => ${graceSeconds})
            WHERE EXISTS (
              SELECT FROM json_array_elements(${ranges}::text::json) AS range
              WHERE came <= (range ->> 1)::bigint AND went > (range ->> 0)::bigint
            ) RETURNING disk_name
          )
          SELECT disk_name FROM inkwell.replaced_files WHERE remove_at <= now()
            AND NOT EXISTS (SELECT FROM held WHERE held.disk_name = replaced_files.disk_name)
          UNION (SELECT disk_name FROM inkwell.replaced_files ORDER BY went DESC OFFSET ${filesMax})
          LIMIT ${removableMax}`,
      );
      return rows.map(toDiskName);
    },
  };
}
