/** The index of stored files in SQLite. */

import { type DurableFileIndex, type FileLimits, sizeOf, tooManyFiles } from '../file-index.ts';
import { createFileStatements } from '../sql/files.ts';
import { toFile } from '../sql/rows.ts';
import { escapeText } from '../sql/text-escape.ts';
import type { SqliteContext } from './statements.ts';

export function createFileIndex(
  { sql, writes }: Pick<SqliteContext, 'sql' | 'writes'>,
  limits: FileLimits,
): DurableFileIndex {
  const total = 'SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM files';
  const find = 'SELECT stored_name, disk_name, size FROM files WHERE stored_name = $1';
  // Older builds need the column `change`.
  const save = `INSERT INTO files (stored_name, disk_name, size, change) VALUES ($1, $2, $3, 0)
    ON CONFLICT (stored_name) DO UPDATE SET disk_name = excluded.disk_name, size = excluded.size`;
  return {
    ...createFileStatements(sql),
    commit: (files) =>
      writes.run(() => {
        const replaced = files.flatMap(({ storedName }) =>
          sql.read(find, [escapeText(storedName)]).map(toFile),
        );
        const [stored] = sql.read(total, []);
        const count = Number(stored?.['n']) + files.length - replaced.length;
        const bytes = Number(stored?.['bytes']) + sizeOf(files) - sizeOf(replaced);
        if (count > limits.filesMax || bytes > limits.bytesMax) throw tooManyFiles(limits);
        for (const { storedName, temporaryName, size } of files) {
          sql.run('files', save, [escapeText(storedName), temporaryName, size]);
        }
        return replaced;
      }),
  };
}
