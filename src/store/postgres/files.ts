/**
 * The index of stored files in PostgreSQL, for all nodes. `seq` orders them by their names' first
 * storage (R2). A commit is a function in the database: it locks the row that counts commits before
 * it reads the files, so that the limits on their number and bytes apply across all nodes.
 */

import { type FileIndex, type FileIndexOptions, removableMax, toRanges } from '../file-index.ts';
import { toDiskName, toFile } from '../sql/rows.ts';
import type { PostgresContext } from './pool.ts';
import { escapeText } from '../sql/text-escape.ts';
import { tooManyFiles } from '../uploads.ts';

export function createFileIndex(
  pool: PostgresContext['pool'],
  { filesMax, bytesMax, graceSeconds }: FileIndexOptions,
): FileIndex {
  return {
    async list(storedName) {
      const rows = await pool.read((sql) => {
        const named =
          storedName !== undefined && sql`WHERE stored_name = ${escapeText(storedName)}`;
        return sql`SELECT stored_name, disk_name, size,
            (SELECT last FROM inkwell.file_changes) AS change
          FROM inkwell.files ${named || sql``} ORDER BY seq`;
      });
      return { files: rows.map(toFile), change: Number(rows[0]?.['change'] ?? 0) };
    },
    async commit(files) {
      const entries = files.map(({ storedName, temporaryName, size }, at) => {
        return { at, stored_name: escapeText(storedName), disk_name: temporaryName, size };
      });
      const [row] = await pool.write(
        (sql) => sql`SELECT inkwell.commit_files(
          ${JSON.stringify(entries)}::text::json, ${filesMax}, ${bytesMax}, ${graceSeconds}
        ) AS replaced`,
      );
      const replaced = Number(row?.['replaced']);
      if (replaced < 0) throw tooManyFiles(filesMax, bytesMax);
      return replaced;
    },
    remove: createRemove(pool, graceSeconds),
    async abandon(temporaryNames) {
      const rows = await pool.write(
        (sql) => sql`SELECT inkwell.abandon_files(
          ${JSON.stringify(temporaryNames)}::text::json, ${graceSeconds}) AS disk_name`,
      );
      return rows.map(toDiskName);
    },
    async removable(reading) {
      const ranges = JSON.stringify(toRanges(reading));
      const rows = await pool.write(
        (sql) => sql`WITH held AS (
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
    async forget(temporaryNames) {
      await pool.write(
        (sql) => sql`DELETE FROM inkwell.replaced_files WHERE disk_name IN (
          SELECT json_array_elements_text(${JSON.stringify(temporaryNames)}::text::json))`,
      );
    },
    async replaced() {
      const rows = await pool.read((sql) => sql`SELECT disk_name FROM inkwell.replaced_files`);
      return rows.map(toDiskName);
    },
  };
}

/** Locks the row that counts commits first, as a commit does. */
function createRemove(pool: PostgresContext['pool'], graceSeconds: number): FileIndex['remove'] {
  return async ({ temporaryName }) => {
    await pool.write(
      (sql) => sql`WITH turn AS (
          UPDATE inkwell.file_changes SET last = last + 1 RETURNING last
        ), gone AS (
          DELETE FROM inkwell.files USING turn WHERE disk_name = ${temporaryName}
          RETURNING disk_name, change, last
        )
        INSERT INTO inkwell.replaced_files
        SELECT disk_name, change, last, now() + make_interval(secs => ${graceSeconds}) FROM gone`,
    );
  };
}
