/** Kept accounts in PostgreSQL, for the nodes and for the command that changes them. */

import { createKeptAccounts } from '../sql/accounts.ts';
import { toRow } from '../sql/rows.ts';
import type { KeptAccounts } from '../store.ts';
import type { PostgresContext } from './pool.ts';
import { sql } from './connection.ts';

export function createKept({
  pool,
  sql: statements,
  now,
}: Omit<PostgresContext, 'createId'>): KeptAccounts {
  return createKeptAccounts(statements, {
    async add(account) {
      const rows = await pool.write(
        sql`WITH added AS (
            INSERT INTO inkwell.accounts
            SELECT * FROM json_populate_record(
              null::inkwell.accounts, ${JSON.stringify(toRow(account))}::text::json)
            ON CONFLICT DO NOTHING RETURNING id, username, email
          )
          INSERT INTO inkwell.authors (id, name, email, created_at)
          SELECT id, username, email, ${now()} FROM added
          ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email
          RETURNING 1`,
      );
      return rows.length === 1;
    },
    async change(_username, text, values) {
      const both = `WITH changed AS (${text}), renewed AS (
          UPDATE inkwell.authors SET email = changed.email FROM changed
          WHERE authors.id = changed.id
        )
        SELECT 1 FROM changed`;
      return (await statements.write('accounts', both, values)).length === 1;
    },
  });
}
