/** Kept accounts in SQL, for the server that reads them and the command that changes them. */

import { andThen } from '../../maybe-promise.ts';
import type { KeptAccounts } from '../store.ts';
import { toAccount, toPerson, type Value } from './rows.ts';
import { findBy, type Sql } from './sql.ts';
import { escapeText } from './text-escape.ts';

/** Writes to two tables in one transaction, which each driver does in its own way. */
export interface AccountWrites {
  /** Also creates the author. */
  readonly add: KeptAccounts['add'];
  /** Runs the statement, which changes this account, and gives its author the account's email. */
  readonly change: (username: string, text: string, values: readonly Value[]) => Promise<boolean>;
}

export function createKeptAccounts(sql: Sql, { add, change }: AccountWrites): KeptAccounts {
  const accounts = `${sql.schema}accounts`;
  const find = findBy(sql, ['accounts', 'username'], toAccount);
  return {
    find: (username) => find(escapeText(username)),
    list({ after = '', limit = Number.MAX_SAFE_INTEGER } = {}) {
      const text = `SELECT username, id, email, roles FROM ${accounts}
        WHERE username > $1 ORDER BY username LIMIT $2`;
      return andThen(sql.read(text, [escapeText(after), limit]), (rows) => rows.map(toPerson));
    },
    add,
    change(username, { email, roles, passwordHash = null }) {
      const text = `UPDATE ${accounts} SET email = coalesce($1, email),
        roles = coalesce($2, roles), password_hash = coalesce($3, password_hash)
        WHERE username = $4 RETURNING id, email`;
      const changed = [email, roles && JSON.stringify(roles)].map((value) =>
        value === undefined ? null : escapeText(value),
      );
      const key = escapeText(username);
      return change(key, text, [...changed, passwordHash, key]);
    },
    async remove(username) {
      const text = `DELETE FROM ${accounts} WHERE username = $1 RETURNING 1`;
      return (await sql.write('accounts', text, [escapeText(username)])).length === 1;
    },
  };
}
