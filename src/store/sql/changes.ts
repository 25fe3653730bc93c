/** Changes and removals of single records in SQL, for both drivers. */

import type { Changed, ChangeOptions } from '../store.ts';
import { escapeText, toColumn, toRow, type Value } from './rows.ts';
import type { Key, Sql } from './statements.ts';

/** As in `Kind`. */
interface ChangedMembers {
  readonly changing: readonly string[];
  readonly lasting?: readonly string[];
  readonly owner?: string;
}

/**
 * Changes the given members of a record, or removes it. The condition on its `columns` is part of
 * the statement that writes, so that no change can come between.
 */
export function createChanges(
  sql: Pick<Sql, 'schema' | 'change'>,
  [table, key]: Key,
  { changing, lasting = [], owner }: ChangedMembers,
) {
  const columns = changing.map(toColumn);
  const returned = owner === undefined ? key : `${key}, ${toColumn(owner)}`;
  const valuesOf = (members: object): readonly Value[] => {
    const row = toRow(members);
    return columns.map((column) => row[column] ?? null);
  };
  const write = (
    text: string,
    [id, values, { expected, once, askedAt }]: readonly [
      string | number,
      readonly Value[],
      ChangeOptions<object>,
    ],
  ): Promise<Changed> => {
    const at = values.length + 1;
    const conditions = expected && columns.map((name, n) => ` AND ${name} = $${at + 1 + n}`);
    const all = [
      ...values,
      typeof id === 'string' ? escapeText(id) : id,
      ...(expected ? valuesOf(expected) : []),
    ];
    const where = `WHERE ${key} = $${at}${conditions?.join('') ?? ''} RETURNING ${returned}`;
    const statement = [table, `${text} ${where}`, all, askedAt] as const;
    return sql.change(once, statement);
  };
  const kept = lasting.map(toColumn);
  return {
    update: (id: string, change: object, options: ChangeOptions<object> = {}) => {
      const row = toRow(change);
      // Only what is given: SQLite writes the indexes of all columns that a statement sets.
      const given = [...columns, ...kept].filter((column) => row[column] !== undefined);
      const changes = given.map((column, n) => {
        const value = kept.includes(column) ? `coalesce(${column}, $${n + 1})` : `$${n + 1}`;
        return `${column} = ${value}`;
      });
      const set = changes.length === 0 ? `${key} = ${key}` : changes.join(', ');
      const values = given.map((column) => row[column] ?? null);
      return write(`UPDATE ${sql.schema}${table} SET ${set}`, [id, values, options]);
    },
    remove: (id: string | number, options: ChangeOptions<object> = {}) =>
      write(`DELETE FROM ${sql.schema}${table}`, [id, [], options]),
  };
}
