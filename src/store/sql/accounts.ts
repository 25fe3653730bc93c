/** Kept accounts in SQL, for the server that looks them up and the command that changes them. */

import { andThen } from '../../maybe-promise.ts';
import type { KeptAccounts } from '../store.ts';
import { toAccount, toPerson } from './rows.ts';
import { findBy, type Sql } from './sql.ts';
import { escapeText } from './text-escape.ts';

/** `add` also makes the author, as one act. */
export function createKeptAccounts(sql: Sql, add: KeptAccounts['add']): KeptAccounts {
  const accounts = `${sql.schema}accounts`;
  const find = findBy(sql, ['accounts', 'username'], toAccount);
  return {
    find: (username) => find(escapeText(username)),
    list: () =>
      andThen(sql.read(`SELECT username, id, email, roles FROM ${accounts}`, []), (rows) =>
        rows.map(toPerson).toSorted((a, b) => (a.username < b.username ? -1 : 1)),
      ),
    add,
    async setPasswordHash(username, hash) {
      const text = `UPDATE ${accounts} SET password_hash = $1 WHERE username = $2`;
      return (await sql.write('accounts', text, [hash, escapeText(username)])) === 1;
    },
    async remove(username) {
      const text = `DELETE FROM ${accounts} WHERE username = $1`;
      return (await sql.write('accounts', text, [escapeText(username)])) === 1;
    },
  };
}
