/** The schema in PostgreSQL, as numbered migrations, and the initial records. */

import type { Log } from '../../log.ts';
import type { InitialData } from '../store.ts';
import { authorsOfAccounts, columnsOf, toRow, toInitialRows } from '../sql/rows.ts';
import { type Connection, run, sql, type Statement } from './connection.ts';
import { rowsOf } from './inserts.ts';

/** Lets one node at a time commit files: "Inkf". */
const filesLock = 0x49_6e_6b_66;

/**
 * Each step runs once per database, in this order, in a transaction of its own: what a step locks
 * is free again during the next one, which may take long. Steps are added, never changed; what only
 * nodes of older builds use is left out of new databases.
 */
const steps: readonly string[] = [
  `CREATE TABLE inkwell.posts (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    title text NOT NULL,
    content text NOT NULL,
    status text NOT NULL,
    created_at text NOT NULL,
    author_id uuid
  );
  CREATE INDEX posts_of_author ON inkwell.posts (author_id, seq) WHERE author_id IS NOT NULL;
  CREATE TABLE inkwell.comments (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    post_id uuid NOT NULL REFERENCES inkwell.posts (id) ON DELETE CASCADE,
    content text NOT NULL,
    created_at text NOT NULL
  );
  CREATE INDEX comments_of_post ON inkwell.comments (post_id, seq);
  CREATE TABLE inkwell.authors (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL,
    created_at text NOT NULL
  );
  CREATE TABLE inkwell.todos (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    title text NOT NULL,
    completed boolean NOT NULL
  );
  CREATE TABLE inkwell.articles (
    id bigint PRIMARY KEY,
    version bigint NOT NULL DEFAULT 0,
    document text NOT NULL
  );
  CREATE TABLE inkwell.counters (
    name text PRIMARY KEY,
    value bigint NOT NULL
  );
  INSERT INTO inkwell.counters VALUES ('articles', 0);`,
  `CREATE TABLE inkwell.accounts (
    username text PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    email text NOT NULL,
    roles text NOT NULL,
    password_hash text NOT NULL
  );`,
  `CREATE TABLE inkwell.article_turn (
    holder uuid,
    ends timestamptz NOT NULL
  );
  INSERT INTO inkwell.article_turn VALUES (NULL, '-infinity');`,
  `CREATE TABLE inkwell.files (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored_name text NOT NULL UNIQUE,
    disk_name text NOT NULL UNIQUE,
    size bigint NOT NULL,
    change bigint NOT NULL
  );`,
  // Each promotion of a standby starts a timeline with the next number. 0: the server does not
  // tell, as in recovery. Comments stored before this step have none.
  `CREATE OR REPLACE FUNCTION inkwell.timeline() RETURNS integer LANGUAGE plpgsql AS $function$
  BEGIN
    RETURN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;
  EXCEPTION WHEN OTHERS THEN
    RETURN 0;
  END $function$;
  ALTER TABLE inkwell.comments ADD COLUMN timeline integer;
  ALTER TABLE inkwell.comments ALTER COLUMN timeline SET DEFAULT inkwell.timeline();`,
  // Two steps that only older builds need: they made functions, and a table of failed logins.
  '',
  '',
  // Random, because after a failover a lost version number could be given again.
  `ALTER TABLE inkwell.articles ALTER COLUMN version SET DEFAULT (random() * 9e15)::bigint;`,
  // `store_files` stores the given files, and returns those that they replace. Beyond a limit it
  // stores nothing, and returns NULL.
  `CREATE TABLE inkwell.upload_folder (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id text NOT NULL
  );
  CREATE OR REPLACE FUNCTION
    inkwell.store_files(given json, files_max bigint, bytes_max bigint)
  RETURNS json LANGUAGE plpgsql AS $function$
  DECLARE
    replaced json;
  BEGIN
    PERFORM pg_advisory_xact_lock(${filesLock});
    IF (
      SELECT count(*) > files_max OR sum(size) > bytes_max FROM (
        SELECT size FROM json_to_recordset(given) AS sent (size bigint)
        UNION ALL SELECT size FROM inkwell.files WHERE stored_name NOT IN
          (SELECT stored_name FROM json_to_recordset(given) AS sent (stored_name text))
      ) AS stored
    ) THEN RETURN NULL; END IF;
    SELECT json_agg(json_build_object('temporaryName', disk_name, 'size', size)) INTO replaced
      FROM inkwell.files JOIN json_to_recordset(given) AS sent (stored_name text)
      USING (stored_name);
    -- Older builds need the column change.
    INSERT INTO inkwell.files (stored_name, disk_name, size, change)
      SELECT stored_name, disk_name, size, 0 FROM json_to_recordset(given)
        AS sent (at int, stored_name text, disk_name text, size bigint)
      ORDER BY at
      ON CONFLICT (stored_name) DO UPDATE
      SET disk_name = excluded.disk_name, size = excluded.size;
    RETURN coalesce(replaced, '[]');
  END $function$;`,
  'CREATE INDEX posts_of_status ON inkwell.posts (status, seq);',
  // The oldest build that may use the tables, as the number of its steps: a later step that such a
  // build could not bear sets it to its own number.
  'ALTER TABLE inkwell.schema_state ADD COLUMN usable_from integer NOT NULL DEFAULT 11;',
  `CREATE INDEX posts_of_author_status ON inkwell.posts
    ((CAST(author_id AS text) || ' ' || status), seq) WHERE author_id IS NOT NULL;`,
  // Writes under keys (R40). Numbers may be missing, so that their span bounds the rows.
  `CREATE TABLE inkwell.requests (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL UNIQUE,
    print text NOT NULL,
    result text NOT NULL,
    made timestamptz NOT NULL DEFAULT now()
  );`,
  // Fails if one of the names is stored (R45): `toStoreError` knows the error by its table.
  `CREATE OR REPLACE FUNCTION
    inkwell.store_new_files(given json, files_max bigint, bytes_max bigint)
  RETURNS json LANGUAGE plpgsql AS $function$
  BEGIN
    PERFORM pg_advisory_xact_lock(${filesLock});
    IF EXISTS (
      SELECT FROM inkwell.files JOIN json_to_recordset(given) AS sent (stored_name text)
        USING (stored_name)
    ) THEN
      RAISE unique_violation USING TABLE = 'files';
    END IF;
    RETURN inkwell.store_files(given, files_max, bytes_max);
  END $function$;`,
];

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
 */
export async function migrate(connection: Connection, log: Log): Promise<void> {
  await connection.runScript(locks + checks + creation);
  const from = await findVersion(connection);
  const to = steps.length;
  for (let before = from; before < to; before += 1) {
    await connection.runScript(`${locks} DO $step$ BEGIN
      IF (SELECT version FROM inkwell.schema_state) = ${before} THEN
        ${steps[before]}
        UPDATE inkwell.schema_state SET version = ${before + 1};
      END IF;
    END $step$;`);
  }
  if (from > 0 && from < to) log('info', 'schema migrated', { from, to });
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

/** Finds a privilege that the role lacks to read and write (grants in `docs/production.md`). */
const missingGrant = sql`SELECT format('%s on %s', privilege, oid::regclass) AS privilege
  FROM pg_class, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS privilege
  WHERE relnamespace = 'inkwell'::regnamespace AND NOT has_table_privilege(oid, privilege)
    AND (relkind = 'r' OR relkind = 'S' AND privilege = 'SELECT') LIMIT 1`;
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
    IF to_regclass('inkwell.schema_state') IS NOT NULL THEN RETURN; END IF;
    CREATE SCHEMA IF NOT EXISTS inkwell;
    CREATE TABLE inkwell.schema_state (version integer NOT NULL, is_filled boolean NOT NULL);
    INSERT INTO inkwell.schema_state VALUES (0, false);
  END $create$;`;

/**
 * Adds the initial records to a new database: one node does it, others find it done. A command may
 * have added an account and its author before.
 */
export function toFill(initial: InitialData): Statement {
  const tables = toInitialRows(initial);
  const inserts = tables.map(
    ([table], at) => `, filled_${table} AS (
      INSERT INTO inkwell.${table} (${columnsOf[table]}) SELECT ${columnsOf[table]}
      FROM first, ${rowsOf(table, at + 1)} ORDER BY ordinality ON CONFLICT DO NOTHING
    )`,
  );
  return {
    text: `WITH first AS (
      UPDATE inkwell.schema_state SET is_filled = true WHERE NOT is_filled RETURNING 1
    )${inserts.join('')} SELECT FROM first`,
    values: tables.map(([, rows]) => JSON.stringify(rows)),
  };
}

/** The accounts configured for this start (R20): each is also an author with the same id. */
export function toAuthors(initial: InitialData): Statement {
  const rows = authorsOfAccounts(initial).map(toRow);
  return {
    text: `INSERT INTO inkwell.authors (${columnsOf.authors})
    SELECT ${columnsOf.authors} FROM ${rowsOf('authors', 1)} ORDER BY id
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email`,
    values: [JSON.stringify(rows)],
  };
}
