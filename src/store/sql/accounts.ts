/**
 * Stored accounts in SQL, for the server that reads them and the command that changes them. What a
 * change does to an author, and to what the author has left, is in the same transaction.
 */

import { andThen } from '../../maybe-promise.ts';
import type { DriverOptions, Legacy, StoredAccounts } from '../store.ts';
import { createChanges } from './changes.ts';
import { keepAuthors, unlessThere } from './initial.ts';
import { createFind } from './lists.ts';
import { escapeText, toCells, toRecord, toRow } from './rows.ts';
import type { Sql } from './statements.ts';
import type { Write } from './transaction.ts';

export function createStoredAccounts(sql: Sql, now: DriverOptions['now']): StoredAccounts {
  const { schema } = sql;
  const key = ['accounts', 'username'] as const;
  const find = createFind(sql, key);
  const { update } = createChanges(sql, key, { changing: ['passwordHash'] });
  return {
    find: (username) => find(escapeText(username)),
    list() {
      const text = `SELECT username, id, email, roles FROM ${schema}accounts ORDER BY username`;
      return andThen(sql.read(text, []), (rows) =>
        rows.map((row) => {
          const { username, id, email, roles } = toRecord.accounts(toCells('accounts', row));
          return { username, id, email, roles };
        }),
      );
    },
    async add(account) {
      const added = await sql.transact(undefined, function* () {
        const [row] = yield* sql.insert('accounts', [toRow(account)], unlessThere);
        if (row === undefined) return false;
        const { id, username: name, email } = account;
        yield* keepAuthors(sql, [{ id, name, email, createdAt: now() }]);
        return true;
      });
      return added === true;
    },
    async change(username, change) {
      const { email = null, roles = null } = toRow(change);
      const text = `UPDATE ${schema}accounts SET email = coalesce($1, email),
        roles = coalesce($2, roles) WHERE username = $3 RETURNING id`;
      const ofAuthor = `UPDATE ${schema}authors SET email = coalesce($1, email) WHERE id = $2
        RETURNING id`;
      const changed = await sql.transact(undefined, function* () {
        const [row] = yield ['accounts', text, [email, roles, escapeText(username)]];
        if (row === undefined) return false;
        yield ['authors', ofAuthor, [email, String(row['id'])]];
        return true;
      });
      return changed === true;
    },
    async changePassword(username, passwordHash, before) {
      const expected = before === undefined ? undefined : { passwordHash: before };
      return (await update(username, { passwordHash }, { expected })) === true;
    },
    async remove(username, legacy = {}) {
      const text = `DELETE FROM ${schema}accounts WHERE username = $1 RETURNING id`;
      const removed = await sql.transact(undefined, function* () {
        const [row] = yield ['accounts', text, [escapeText(username)]];
        if (row === undefined) return false;
        yield* toLegacyWrites(schema, String(row['id']), legacy);
        return true;
      });
      return removed === true;
    },
  };
}

function toLegacyWrites(
  schema: string,
  id: string,
  { postsTo, isErased = false }: Legacy,
): readonly Write[] {
  const handOver = `UPDATE ${schema}posts SET author_id = $1 WHERE author_id = $2`;
  const unsign = 'SET author_id = NULL, name = NULL WHERE author_id = $1';
  const texts = {
    posts: `UPDATE ${schema}posts SET author_id = NULL WHERE author_id = $1`,
    comments: `UPDATE ${schema}comments ${unsign}`,
    pending_comments: `UPDATE ${schema}pending_comments ${unsign}`,
    files: `UPDATE ${schema}files SET owner = NULL WHERE owner = $1`,
    authors: `DELETE FROM ${schema}authors WHERE id = $1`,
  };
  return [
    ...(postsTo === undefined ? [] : [['posts', handOver, [postsTo, id]] as const]),
    ...Object.entries(isErased ? texts : {}).map(([table, text]) => [table, text, [id]] as const),
  ];
}
