/** The whole store in PostgreSQL, on a connection of the command's own. */

import { createSerial } from '../../serial.ts';
import { createWholeStore } from '../sql/whole-store.ts';
import type { FillableStore, WholeStore } from '../whole-store.ts';
import { type Connection, run, type Server, sql, type Statement } from './client/connection.ts';

import { migrationSeconds } from './schema.ts';
import { act, createReads } from './statements.ts';

/** Waiting for the reader of an export, or for the writer of an import, is not idleness. */
const patient = `SET LOCAL idle_in_transaction_session_timeout = 0;
  SET LOCAL lock_timeout = 60000; SET LOCAL jit = off;`;

export function readPostgres<T>(server: Server, work: (store: WholeStore) => Promise<T>) {
  return transact(server, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', work);
}

/** A node that starts meanwhile waits to find whether it has to fill the tables. */
export function fillPostgres<T>(server: Server, work: (store: FillableStore) => Promise<T>) {
  return transact(server, 'BEGIN', async (store, connection) => {
    await run(connection, sql`UPDATE inkwell.schema_state SET is_filled = true`);
    return work(store);
  });
}

async function transact<T>(
  server: Server,
  begin: string,
  work: (store: FillableStore, connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await server.connect({ statementSeconds: migrationSeconds });
  try {
    await connection.runScript(`${begin}; ${patient}`);
    const done = await work(toWholeStore(connection), connection);
    await run(connection, sql`COMMIT`);
    return done;
  } finally {
    // Without a commit this undoes all.
    connection.end();
  }
}

function toWholeStore(connection: Connection): FillableStore {
  // The package will refuse a statement while another one is under way.
  const line = createSerial();
  const read = (statement: Statement) => line.run(() => run(connection, statement));
  return createWholeStore({
    ...createReads({
      read,
      readCells: async (statement) => (await line.run(() => connection.run(statement))).rows,
    }),
    change: async (_, [, text, values]) => (await read({ text, values })).length > 0,
    act: (steps) => act(steps, read),
  });
}
