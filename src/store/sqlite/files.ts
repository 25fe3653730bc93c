/** The index of stored files in SQLite. */

import { type FileIndex, type FileIndexOptions, removableMax, toRanges } from '../file-index.ts';
import { createFileStatements } from '../sql/files.ts';
import { toDiskName } from '../sql/rows.ts';
import type { SqliteContext } from './statements.ts';
import { escapeText } from '../sql/text-escape.ts';
import { tooManyFiles } from '../uploads.ts';

type FilesContext = Pick<SqliteContext, 'sql' | 'writes'>;
/** Gives a time in milliseconds since 1970. */
type Clock = () => number;

const nextChange = 'UPDATE file_changes SET last = last + 1 RETURNING last';
/** Keeps the file on disk until `$1`; then it is removed. */
const replace = `INSERT INTO replaced_files
  SELECT disk_name, change, (SELECT last FROM file_changes), $1 FROM files WHERE disk_name = $2`;

export function createFileIndex(context: FilesContext, options: FileIndexOptions): FileIndex {
  const { sql, writes } = context;
  const { filesMax, graceSeconds } = options;
  const shared = createFileStatements(sql);
  const expiry: Clock = () => Date.now() + graceSeconds * 1000;
  const isAnyReplaced = 'SELECT 1 FROM replaced_files LIMIT 1';
  const hold = `UPDATE replaced_files SET remove_at = $1 WHERE EXISTS (
      SELECT 1 FROM json_each($2) WHERE came <= value ->> 1 AND went > value ->> 0
    )`;
  const removable = `SELECT disk_name FROM replaced_files WHERE remove_at <= $1 UNION
    SELECT * FROM (SELECT disk_name FROM replaced_files ORDER BY went DESC LIMIT -1 OFFSET $2)
    LIMIT ${removableMax}`;
  const abandon = `INSERT INTO replaced_files SELECT value, 0, 0, $1 FROM json_each($2)
    WHERE value NOT IN (SELECT disk_name FROM files) ON CONFLICT (disk_name) DO NOTHING`;
  const abandoned = `SELECT disk_name FROM replaced_files
    WHERE went = 0 AND disk_name IN (SELECT value FROM json_each($1))`;
  return {
    ...shared,
    commit: createCommit(context, options, expiry),
    remove: ({ temporaryName }) =>
      writes.run(() => {
        sql.run('file_changes', nextChange, []);
        sql.run('replaced_files', replace, [expiry(), temporaryName]);
        sql.run('files', 'DELETE FROM files WHERE disk_name = $1', [temporaryName]);
      }),
    abandon: (temporaryNames) =>
      writes.run(() => {
        const names = JSON.stringify(temporaryNames);
        sql.run('replaced_files', abandon, [expiry(), names]);
        return sql.read(abandoned, [names]).map(toDiskName);
      }),
    removable(reading) {
      if (sql.read(isAnyReplaced, []).length === 0) return [];
      return writes.run(() => {
        sql.run('replaced_files', hold, [expiry(), JSON.stringify(toRanges(reading))]);
        return sql.read(removable, [Date.now(), filesMax]).map(toDiskName);
      });
    },
  };
}

function createCommit(
  { sql, writes }: FilesContext,
  { filesMax, bytesMax }: FileIndexOptions,
  expiry: Clock,
): FileIndex['commit'] {
  const total = 'SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM files';
  const find = 'SELECT disk_name, size FROM files WHERE stored_name = $1';
  const wasReplaced = 'SELECT 1 FROM replaced_files WHERE disk_name = $1';
  const keep = `INSERT INTO files (stored_name, disk_name, size, change) VALUES ($1, $2, $3, $4)
    ON CONFLICT (stored_name) DO UPDATE
    SET disk_name = excluded.disk_name, size = excluded.size, change = excluded.change`;
  return (files) =>
    writes.run(() => {
      const entries = files.map(({ storedName, temporaryName, size }) => {
        const name = escapeText(storedName);
        const [old] = sql.read(find, [name]);
        return { name, temporaryName, size, old };
      });
      const added = entries.filter(({ old }) => old === undefined).length;
      const grown = entries.reduce(
        (sum, { size, old }) => sum + size - Number(old?.['size'] ?? 0),
        0,
      );
      const [stored] = sql.read(total, []);
      const isFull =
        Number(stored?.['n']) + added > filesMax || Number(stored?.['bytes']) + grown > bytesMax;
      if (isFull) throw tooManyFiles(filesMax, bytesMax);
      if (entries.some(({ temporaryName }) => sql.read(wasReplaced, [temporaryName]).length > 0)) {
        throw new Error('a file was committed after it was given up');
      }
      const change = Number(sql.run('file_changes', nextChange, [])[0]?.['last']);
      for (const { name, temporaryName, size, old } of entries) {
        if (old !== undefined) sql.run('replaced_files', replace, [expiry(), toDiskName(old)]);
        sql.run('files', keep, [name, temporaryName, size, change]);
      }
      return entries.length - added;
    });
}
