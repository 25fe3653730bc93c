/** The index of stored files in SQL, for both drivers; `seq` orders by the first storage (R2). */

import { andThen } from '../../maybe-promise.ts';
import {
  checkLimits,
  type DurableFileIndex,
  type FileLimits,
  type ListedFile,
} from '../file-index.ts';
import { escapeText, type NewRow, type Row, toFile } from './rows.ts';
import type { Sql } from './statements.ts';

type NewFile = Omit<ListedFile, 'place'>;

const select = 'SELECT seq, stored_name, disk_name, size, owner FROM';

/** The lists of the index. */
export function createFileList(
  sql: Pick<Sql, 'schema' | 'read' | 'change'>,
): Pick<DurableFileIndex, 'list' | 'page' | 'folderId'> {
  const { schema } = sql;
  const list = `${select} ${schema}files`;
  return {
    list: (storedName) =>
      andThen(
        storedName === undefined
          ? sql.read(`${list} ORDER BY seq`, [])
          : sql.read(`${list} WHERE stored_name = $1`, [escapeText(storedName)]),
        (rows) => rows.map(toFile),
      ),
    page: (after, limit) =>
      andThen(sql.read(`${list} WHERE seq > $1 ORDER BY seq LIMIT $2`, [after, limit]), (rows) =>
        rows.map(toFile),
      ),
    async folderId(claimed) {
      const text = `INSERT INTO ${schema}upload_folder (id) VALUES ($1) ON CONFLICT DO NOTHING`;
      if (claimed !== undefined) await sql.change(undefined, ['upload_folder', text, [claimed]]);
      const [row] = await sql.read(`SELECT id FROM ${schema}upload_folder`, []);
      return row && String(row['id']);
    },
  };
}

/** A commit holds a lock, so that the limits and the check apply to the files of all nodes. */
export function createFileIndex(sql: Sql, limits: FileLimits): DurableFileIndex {
  const { schema } = sql;
  const among = `${select} ${schema}files WHERE ${sql.isAmong('stored_name', '$1')}`;
  const onConflict = `ON CONFLICT (stored_name) DO UPDATE
    SET disk_name = excluded.disk_name, size = excluded.size, owner = excluded.owner`;
  const remove = `DELETE FROM ${schema}files WHERE disk_name = $1 RETURNING 1`;
  return {
    ...createFileList(sql),
    commit: (files, { once, owner = null, check } = {}) =>
      sql.transact(once, function* () {
        if (sql.lockFiles !== undefined) yield ['', sql.lockFiles, []];
        const rows = files.map((file) => toFileRow({ ...file, owner }));
        const names = JSON.stringify(rows.map((row) => row['stored_name']));
        const replaced = (yield ['', among, [names]]).map(toFile);
        check?.(replaced);
        const [stored] = yield ['', toTotal(schema), []];
        checkLimits(limits, toSums(stored), { files, replaced });
        yield* sql.insert('files', rows, { onConflict });
        return replaced;
      }),
    remove: ({ temporaryName }, once) => sql.change(once, ['files', remove, [temporaryName]]),
  };
}

export function toFileRow({ storedName, temporaryName, size, owner }: NewFile): NewRow {
  // Older builds need the column `change`.
  const rest = { disk_name: temporaryName, size, owner, change: 0 };
  return { stored_name: escapeText(storedName), ...rest };
}

/** Reads the sums of all files, for `toSums`. */
export function toTotal(schema: string): string {
  return `SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM ${schema}files`;
}

export function toSums(row: Row | undefined) {
  return { count: Number(row?.['n']), bytes: Number(row?.['bytes']) };
}
