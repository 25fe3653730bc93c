/** The index of stored files in SQLite. `seq` orders them by their names' first storage (R2). */

import { type FileIndex, type FileIndexOptions, removableMax, toRanges } from '../file-index.ts';
import { toDiskName, toFile } from '../sql/rows.ts';
import type { SqliteContext } from './statements.ts';
import { escapeText } from '../sql/text-escape.ts';
import { tooManyFiles } from '../uploads.ts';

export type FilesContext = Pick<SqliteContext, 'database' | 'writes'>;
/** Gives a time in milliseconds since 1970. */
type Clock = () => number;

export function createFileIndex(context: FilesContext, options: FileIndexOptions): FileIndex {
  const { database, writes } = context;
  const { filesMax, graceSeconds } = options;
  const columns = 'stored_name, disk_name, size, (SELECT last FROM file_changes) AS change';
  const list = database.prepare(`SELECT ${columns} FROM files ORDER BY seq`);
  const find = database.prepare(`SELECT ${columns} FROM files WHERE stored_name = ?`);
  const replaced = database.prepare('SELECT disk_name FROM replaced_files');
  const forget = database.prepare('DELETE FROM replaced_files WHERE disk_name = ?');
  const hold = database.prepare(
    `UPDATE replaced_files SET remove_at = ? WHERE EXISTS (
       SELECT 1 FROM json_each(?) WHERE came <= value ->> 1 AND went > value ->> 0
     )`,
  );
  const removable = database.prepare(
    `SELECT disk_name FROM replaced_files WHERE remove_at <= ? UNION
     SELECT * FROM (SELECT disk_name FROM replaced_files ORDER BY went DESC LIMIT -1 OFFSET ?)
     LIMIT ${removableMax}`,
  );
  const expiry: Clock = () => Date.now() + graceSeconds * 1000;

  return {
    list(storedName) {
      const rows = storedName === undefined ? list.all() : find.all(escapeText(storedName));
      return { files: rows.map(toFile), change: Number(rows[0]?.['change'] ?? 0) };
    },
    commit: createCommit(context, options, expiry),
    remove: createRemove(context, expiry),
    abandon: createAbandon(context, expiry),
    removable(reading) {
      if (replaced.get() === undefined) return [];
      return writes.run(() => {
        hold.run(expiry(), JSON.stringify(toRanges(reading)));
        return removable.all(Date.now(), filesMax).map(toDiskName);
      });
    },
    forget: (temporaryNames) =>
      writes.run(() => {
        for (const name of temporaryNames) forget.run(name);
      }),
    replaced: () => replaced.all().map(toDiskName),
  };
}

function createCommit(
  { database, writes }: FilesContext,
  { filesMax, bytesMax }: FileIndexOptions,
  expiry: Clock,
): FileIndex['commit'] {
  const total = database.prepare(
    `SELECT count(*) AS n, coalesce(sum(size), 0) + (SELECT sum(value) FROM json_each(?)) AS bytes
     FROM files`,
  );
  const find = database.prepare('SELECT disk_name, size, change FROM files WHERE stored_name = ?');
  const wasReplaced = database.prepare('SELECT 1 FROM replaced_files WHERE disk_name = ?');
  const next = database.prepare('UPDATE file_changes SET last = last + 1 RETURNING last');
  const replace = database.prepare('INSERT INTO replaced_files VALUES (?, ?, ?, ?)');
  const keep = database.prepare(
    `INSERT INTO files (stored_name, disk_name, size, change) VALUES (?, ?, ?, ?)
     ON CONFLICT (stored_name) DO UPDATE
     SET disk_name = excluded.disk_name, size = excluded.size, change = excluded.change`,
  );
  return (files) =>
    writes.run(() => {
      const entries = files.map(({ storedName, temporaryName, size }) => {
        const name = escapeText(storedName);
        return { name, temporaryName, size, old: find.get(name) };
      });
      const added = entries.filter(({ old }) => old === undefined).length;
      const grown = entries.map(({ size, old }) => size - Number(old?.['size'] ?? 0));
      const { n, bytes } = total.get(JSON.stringify(grown)) ?? {};
      const isFull = Number(n) + added > filesMax || Number(bytes) > bytesMax;
      if (isFull) throw tooManyFiles(filesMax, bytesMax);
      if (files.some(({ temporaryName }) => wasReplaced.get(temporaryName) !== undefined)) {
        throw new Error('a file was committed after it was given up');
      }
      const change = Number(next.get()?.['last']);
      for (const { name, temporaryName, size, old } of entries) {
        if (old !== undefined) {
          replace.run(toDiskName(old), Number(old['change']), change, expiry());
        }
        keep.run(name, temporaryName, size, change);
      }
      return entries.length - added;
    });
}

function createRemove({ database, writes }: FilesContext, expiry: Clock): FileIndex['remove'] {
  const next = database.prepare('UPDATE file_changes SET last = last + 1');
  const give = database.prepare(
    `INSERT INTO replaced_files
     SELECT disk_name, change, (SELECT last FROM file_changes), ? FROM files WHERE disk_name = ?`,
  );
  const remove = database.prepare('DELETE FROM files WHERE disk_name = ?');
  return ({ temporaryName }) =>
    writes.run(() => {
      next.run();
      give.run(expiry(), temporaryName);
      remove.run(temporaryName);
    });
}

function createAbandon({ database, writes }: FilesContext, expiry: Clock): FileIndex['abandon'] {
  const isKept = database.prepare('SELECT 1 FROM files WHERE disk_name = ?');
  const give = database.prepare(
    'INSERT INTO replaced_files VALUES (?, 0, 0, ?) ON CONFLICT (disk_name) DO NOTHING',
  );
  const isNever = database.prepare('SELECT 1 FROM replaced_files WHERE disk_name = ? AND went = 0');
  return (temporaryNames) =>
    writes.run(() => {
      for (const name of temporaryNames) {
        if (isKept.get(name) === undefined) give.run(name, expiry());
      }
      return temporaryNames.filter((name) => isNever.get(name) !== undefined);
    });
}
