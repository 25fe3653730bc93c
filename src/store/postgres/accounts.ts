/** Kept accounts in PostgreSQL, for the nodes and for the command that changes them. */

import { toAccount, toAccountRow, toPerson } from '../rows.ts';
import type { KeptAccounts } from '../store.ts';
import { escapeText } from '../text-escape.ts';
import type { PostgresContext } from './pool.ts';

type Context = Pick<PostgresContext, 'pool' | 'now'>;

export function createKeptAccounts({ pool, now }: Context): KeptAccounts {
  return {
    find: (username) =>
      pool.readOne(
        (sql) => sql`SELECT username, id, email, roles, password_hash FROM inkwell.accounts
          WHERE username = ${escapeText(username)}`,
        toAccount,
      ),
    list: () =>
      pool.readAll(
        (sql) => sql`SELECT username, id, email, roles FROM inkwell.accounts
          ORDER BY username COLLATE "C"`,
        toPerson,
      ),
    async add(account) {
      const count = await pool.count(
        (sql) => sql`WITH added AS (
            INSERT INTO inkwell.accounts ${sql(toAccountRow(account))}
            ON CONFLICT DO NOTHING RETURNING id, username, email
          )
          INSERT INTO inkwell.authors (id, name, email, created_at)
          SELECT id, username, email, ${now()} FROM added
          ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email`,
      );
      return count === 1;
    },
    async setPasswordHash(username, hash) {
      const count = await pool.count(
        (sql) => sql`UPDATE inkwell.accounts SET password_hash = ${hash}
          WHERE username = ${escapeText(username)}`,
      );
      return count === 1;
    },
    async remove(username) {
      const count = await pool.count(
        (sql) => sql`DELETE FROM inkwell.accounts WHERE username = ${escapeText(username)}`,
      );
      return count === 1;
    },
  };
}
