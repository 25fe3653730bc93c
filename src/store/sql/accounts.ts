/** Stored accounts in SQL, for the server that reads them and the command that changes them. */

import { andThen } from '../../maybe-promise.ts';
import type { StoredAccounts } from '../store.ts';
import { toAccount, toPerson } from './rows.ts';
import { findBy, type Sql } from './sql.ts';
import { escapeText } from './text-escape.ts';

/** `add` also writes the author, in one transaction, which each driver does in its own way. */
export function createStoredAccounts(sql: Sql, add: StoredAccounts['add']): StoredAccounts {
  const accounts = `${sql.schema}accounts`;
  const find = findBy(sql, ['accounts', 'username'], toAccount);
  const change = async (text: string, values: readonly string[]): Promise<boolean> =>
    (await sql.write('accounts', `${text} RETURNING 1`, values)).length === 1;
  return {
    find: (username) => find(escapeText(username)),
    list() {
      const text = `SELECT username, id, email, roles FROM ${accounts} ORDER BY username`;
      return andThen(sql.read(text, []), (rows) => rows.map(toPerson));
    },
    add,
    changePassword(username, passwordHash) {
      const text = `UPDATE ${accounts} SET password_hash = $1 WHERE username = $2`;
      return change(text, [passwordHash, escapeText(username)]);
    },
    remove: (username) =>
      change(`DELETE FROM ${accounts} WHERE username = $1`, [escapeText(username)]),
  };
}
