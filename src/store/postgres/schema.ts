/** The schema in PostgreSQL: migration and check. `steps.ts` has its steps. */

import type { Log } from '../../log.ts';
import { otherVersion } from '../whole-store.ts';
import { type Connection, run, sql } from './client/connection.ts';
import { steps } from './steps.ts';

/** Time limit for a migration, which includes waiting for other nodes. */
export const migrationSeconds = 600;
/**
 * How long a migration waits for a table that is being read, as `pg_dump` does: statements of other
 * nodes wait behind it. It fails then, and is tried again.
 */
const tableLockMilliseconds = 500;

/** One number for all nodes: "Inkw". */
const migrationLock = 0x49_6e_6b_77;

/**
 * Migrates the database to the newest step. Each text is sent at once, so that PostgreSQL runs it
 * as one transaction; the lock admits one node at a time, and another one may be steps ahead.
 * `to`: the number of steps.
 */
export async function migrate(connection: Connection, log: Log, to = steps.length): Promise<void> {
  await connection.runScript(locks + checks + creation);
  const from = await findVersion(connection);
  for (let before = from; before < to; before += 1) {
    await connection.runScript(`${locks} DO $step$ BEGIN
      IF (SELECT version FROM inkwell.schema_state) = ${before} THEN
        ${steps[before]}
        UPDATE inkwell.schema_state SET version = ${before + 1};
      END IF;
    END $step$;`);
  }
  if (from === 0 || from >= to) return;
  const [state] = await run(connection, sql`SELECT usable_from FROM inkwell.schema_state`);
  log('info', 'schema migrated', { from, to, usableFrom: Number(state?.['usable_from']) });
}

/**
 * Throws if a start would refuse the database, as far as that shows without a change. Returns true
 * if the tables are up to date.
 */
export async function checkSchema(connection: Connection): Promise<boolean> {
  await connection.runScript(locks + checks);
  const isReady = (await findVersion(connection)) >= steps.length;
  const [missing] = await run(connection, isReady ? missingGrant : missingRight);
  if (missing === undefined) return isReady;
  throw new Error(`STORE_URL: the role lacks ${String(missing['privilege'])}.`);
}

/** Throws unless the tables are of this version: in others this one does not know all columns. */
export async function requireSchema(connection: Connection): Promise<void> {
  await connection.runScript(locks + checks);
  const version = await findVersion(connection);
  if (version !== steps.length) throw otherVersion();
}

/** Finds a privilege that the role lacks to read and write (grants in `docs/production.md`). */
const missingGrant = sql`SELECT format('%s on %s', privilege, oid::regclass) AS privilege
  FROM pg_class, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS privilege
  WHERE relnamespace = 'inkwell'::regnamespace AND NOT has_table_privilege(oid, privilege)
    AND (relkind = 'r' OR relkind = 'S' AND privilege = 'SELECT')
  UNION ALL SELECT format('EXECUTE on %s', oid::regprocedure) FROM pg_proc
  WHERE pronamespace = 'inkwell'::regnamespace AND NOT has_function_privilege(oid, 'EXECUTE')
  LIMIT 1`;
/** Finds whether the role lacks what creating or migrating the tables needs. */
const missingRight = sql`SELECT 'what the command "migrate" needs' AS privilege FROM pg_class
  WHERE relnamespace = to_regnamespace('inkwell')
  HAVING NOT coalesce(bool_and(pg_has_role(relowner, 'USAGE')),
    has_database_privilege(current_database(), 'CREATE'))`;

/** Returns the number of steps that the database has seen; 0 if it has no tables. */
async function findVersion(connection: Connection): Promise<number> {
  const [found] = await run(connection, sql`SELECT to_regclass('inkwell.schema_state') AS name`);
  if (found?.['name'] == null) return 0;
  const [state] = await run(connection, sql`SELECT version FROM inkwell.schema_state`);
  return Number(state?.['version']);
}

const locks = `
  SET LOCAL lock_timeout = 0;
  SELECT pg_advisory_xact_lock(${migrationLock});
  SET LOCAL lock_timeout = ${tableLockMilliseconds};`;

/** Refusals begin with STORE_URL: `toStartError` passes them on as they are. */
const checks = `
  DO $check$ BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
      RAISE EXCEPTION 'STORE_URL: the encoding of the database is %, and has to be UTF8: '
        'CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0.',
        current_setting('server_encoding');
    END IF;
    IF to_regclass('inkwell.schema_state') IS NULL THEN RETURN; END IF;
    -- Each IF is planned when it is reached: only tables of a later step surely have the column.
    IF (SELECT version FROM inkwell.schema_state) > ${steps.length} THEN
      IF (SELECT usable_from FROM inkwell.schema_state) > ${steps.length} THEN
        RAISE EXCEPTION 'STORE_URL: the database was written by a newer version of this program.';
      END IF;
    END IF;
  END $check$;`;

const creation = `
  DO $create$ BEGIN
    IF to_regclass('inkwell.schema_state') IS NULL THEN
      CREATE SCHEMA IF NOT EXISTS inkwell;
      CREATE TABLE inkwell.schema_state (version integer NOT NULL, is_filled boolean NOT NULL);
      INSERT INTO inkwell.schema_state VALUES (0, false);
    END IF;
    -- Before any step: rows of a table that is published are changed by their primary key.
    IF NOT EXISTS (SELECT FROM pg_index
      WHERE indrelid = 'inkwell.schema_state'::regclass AND indisprimary)
    THEN
      ALTER TABLE inkwell.schema_state
        ADD COLUMN one boolean PRIMARY KEY DEFAULT true CHECK (one);
    END IF;
  END $create$;`;
