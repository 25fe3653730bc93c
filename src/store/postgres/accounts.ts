/** Kept accounts in PostgreSQL, for the nodes and for the command that changes them. */

import { toAccount, toListed, toTexts } from '../account-row.ts';
import type { Pool } from './pool.ts';
import type { KeptAccounts } from '../store.ts';
import { escapeText } from '../text-escape.ts';

export interface KeptAccountsDeps {
  readonly pool: Pool;
  /** The local date-time of now, as records keep it. */
  readonly now: () => string;
}

export function createKeptAccounts({ pool, now }: KeptAccountsDeps): KeptAccounts {
  return {
    async find(username) {
      const [row] = await pool.read(
        (sql) => sql`SELECT username, id, email, roles, password_hash FROM inkwell.accounts
          WHERE username = ${escapeText(username)}`,
      );
      return row && toAccount(row);
    },
    list: () =>
      pool.readPages(
        (sql) => sql`SELECT username, id, email, roles FROM inkwell.accounts
          ORDER BY username COLLATE "C"`,
        toListed,
      ),
    async add(account) {
      const { username, email, roles } = toTexts(account);
      const rows = await pool.write(
        (sql) => sql`WITH added AS (
            INSERT INTO inkwell.accounts (username, id, email, roles, password_hash)
            VALUES (${username}, ${account.id}, ${email}, ${roles}, ${account.passwordHash})
            ON CONFLICT DO NOTHING RETURNING id, username, email
          )
          INSERT INTO inkwell.authors (id, name, email, created_at)
          SELECT id, username, email, ${now()} FROM added
          ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email
          RETURNING id`,
      );
      return rows.length > 0;
    },
    async setPasswordHash(username, hash) {
      const rows = await pool.write(
        (sql) => sql`UPDATE inkwell.accounts SET password_hash = ${hash}
          WHERE username = ${escapeText(username)} RETURNING id`,
      );
      return rows.length > 0;
    },
    async remove(username) {
      const rows = await pool.write(
        (sql) => sql`DELETE FROM inkwell.accounts
          WHERE username = ${escapeText(username)} RETURNING id`,
      );
      return rows.length > 0;
    },
  };
}
