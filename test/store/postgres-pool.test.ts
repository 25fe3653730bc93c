import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { createConnect, createPool, type Pool } from '../../dist/store/postgres/pool.js';
import { withCode } from '../support/errors.js';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.js';

let server: PostgresServer;
before(async () => {
  if (skip === false) server = await startPostgres();
});
after(async () => {
  if (skip === false) await server.remove();
});

/** With one connection, so that each statement comes after the one before it. */
async function openPool(context: TestContext): Promise<Pool> {
  const connect = await createConnect(await server.createDatabase());
  const options = { log: () => undefined, connectionsMax: 1, timeoutSeconds: 1 };
  const pool = createPool(connect, options);
  context.after(() => pool.close());
  return pool;
}

test('a row is found after a statement that failed behind many rows', { skip }, async (t) => {
  const pool = await openPool(t);
  const failing = pool.read((sql) => sql`SELECT 1 / (5000 - n) FROM generate_series(1, 9000) AS n`);
  await assert.rejects(failing, /division by zero/);
  const rows = await pool.read((sql) => sql`SELECT n FROM generate_series(1, 3) AS n`);
  assert.deepEqual(
    rows.map((row) => row['n']),
    [1, 2, 3],
  );
});

test('a row is found after a statement that ran out of time', { skip }, async (t) => {
  const pool = await openPool(t);
  const slow = pool.read(
    (sql) => sql`SELECT n, CASE WHEN n > 5000 THEN pg_sleep(0.1) END
      FROM generate_series(1, 9000) AS n`,
  );
  await assert.rejects(slow, withCode('overloaded'));
  assert.deepEqual(
    await pool.readOne(
      (sql) => sql`SELECT 7 AS n`,
      (row) => row['n'],
    ),
    7,
  );
});
