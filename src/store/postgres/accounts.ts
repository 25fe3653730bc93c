/** Stored accounts in PostgreSQL, for the nodes and for the command that changes them. */

import { createStoredAccounts } from '../sql/records.ts';
import { toRow } from '../sql/rows.ts';
import type { StoredAccounts } from '../store.ts';
import type { PostgresContext } from './statements.ts';
import { sql } from './connection.ts';

export function createStored({
  pool,
  sql: statements,
  now,
}: Omit<PostgresContext, 'createId'>): StoredAccounts {
  return createStoredAccounts(statements, async (account) => {
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
  });
}
