/** The numbered steps of the schema in PostgreSQL. */

import { removedPostsMax } from '../shared.ts';

/** Lets one transaction at a time, over all nodes, number comments: "Inkc". */
const orderLock = 0x49_6e_6b_63;
/** Lets one node at a time commit files: "Inkf". Functions of older builds take it too. */
export const filesLock = 0x49_6e_6b_66;

/**
 * Each step runs once per database, in this order, in a transaction of its own: what a step locks
 * is free again during the next one, which may take long. Steps are added, never changed; what only
 * nodes of older builds use is left out of new databases.
 */
export const steps: readonly string[] = [
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
  // Comments get their places in the order of commits, whichever program inserts them: the lock is
  // held until the commit. For each row, so that what the statement waits for comes before the
  // lock. By the rights of the owner, as an identity column takes its numbers.
  `DECLARE
    last bigint;
    is_used boolean;
  BEGIN
    LOCK TABLE inkwell.comments;
    SELECT last_value, is_called INTO last, is_used FROM inkwell.comments_seq_seq;
    ALTER TABLE inkwell.comments ALTER COLUMN seq DROP IDENTITY,
      ALTER COLUMN timeline SET DEFAULT 0; -- Older builds have this column.
    CREATE SEQUENCE inkwell.comments_seq_seq OWNED BY inkwell.comments.seq;
    PERFORM setval('inkwell.comments_seq_seq', last, is_used);
  END;
  CREATE FUNCTION inkwell.take_turn() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
  BEGIN
    PERFORM pg_advisory_xact_lock(${orderLock});
    NEW.seq := nextval('inkwell.comments_seq_seq');
    RETURN NEW;
  END $function$;
  CREATE TRIGGER take_turn BEFORE INSERT ON inkwell.comments
    FOR EACH ROW EXECUTE FUNCTION inkwell.take_turn();`,
  // The order of "C" is that of bytes: no other version of a library of the system changes it.
  `ALTER TABLE inkwell.posts ALTER COLUMN status TYPE text COLLATE "C";
  ALTER TABLE inkwell.counters ALTER COLUMN name TYPE text COLLATE "C";
  ALTER TABLE inkwell.accounts ALTER COLUMN username TYPE text COLLATE "C";
  ALTER TABLE inkwell.files ALTER COLUMN stored_name TYPE text COLLATE "C",
    ALTER COLUMN disk_name TYPE text COLLATE "C";
  ALTER TABLE inkwell.article_turn
    ADD COLUMN one boolean PRIMARY KEY DEFAULT true CHECK (one);`,
  // Keys of clients without a token, with a bound of their own. Who stored a file (R36): files
  // of before belong to nobody.
  `ALTER TABLE inkwell.requests ADD COLUMN is_anonymous boolean NOT NULL DEFAULT false;
  CREATE INDEX requests_of_kind ON inkwell.requests (is_anonymous, seq);
  ALTER TABLE inkwell.files ADD COLUMN owner uuid;`,
  // When posts were published (R49). Whatever else publishes one, as older builds do, has the clock
  // of the database. Of the latest removed ones the dates stay, for pages that begin after them.
  `ALTER TABLE inkwell.posts ADD COLUMN published_at text COLLATE "C";
  CREATE TABLE inkwell.removed_posts (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    published_at text COLLATE "C" NOT NULL
  );
  CREATE FUNCTION inkwell.publish() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $function$
  BEGIN
    NEW.published_at := rtrim(rtrim(to_char(
      clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS'), '0'), '.');
    RETURN NEW;
  END $function$;
  CREATE TRIGGER publish BEFORE INSERT OR UPDATE ON inkwell.posts FOR EACH ROW
    WHEN (NEW.status = 'PUBLISHED' AND NEW.published_at IS NULL)
    EXECUTE FUNCTION inkwell.publish();
  CREATE FUNCTION inkwell.keep_date() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
  BEGIN
    INSERT INTO inkwell.removed_posts (id, published_at) VALUES (OLD.id, OLD.published_at)
      ON CONFLICT (id) DO UPDATE SET published_at = excluded.published_at;
    DELETE FROM inkwell.removed_posts WHERE seq IN (
      SELECT seq FROM inkwell.removed_posts
      WHERE seq <= (SELECT max(seq) FROM inkwell.removed_posts) - ${removedPostsMax}
      ORDER BY seq LIMIT 10 FOR UPDATE SKIP LOCKED
    );
    RETURN NULL;
  END $function$;
  CREATE TRIGGER keep_date AFTER DELETE ON inkwell.posts FOR EACH ROW
    WHEN (OLD.published_at IS NOT NULL) EXECUTE FUNCTION inkwell.keep_date();`,
  // After the trigger, so that none is published without a date meanwhile.
  `UPDATE inkwell.posts SET published_at = created_at
    WHERE status = 'PUBLISHED' AND published_at IS NULL;`,
  // Who wrote a comment (R48).
  'ALTER TABLE inkwell.comments ADD COLUMN name text, ADD COLUMN author_id uuid;',
  // By expressions that no other index has: the planner sorts none of its rows.
  `CREATE INDEX posts_published ON inkwell.posts
    ((CASE WHEN status = 'PUBLISHED' THEN published_at || ' ' || CAST(id AS text) END))
    WHERE published_at IS NOT NULL;
  CREATE INDEX posts_of_author_published ON inkwell.posts
    ((CASE WHEN status = 'PUBLISHED' THEN author_id END),
    (CASE WHEN status = 'PUBLISHED' THEN published_at || ' ' || CAST(id AS text) END))
    WHERE published_at IS NOT NULL AND author_id IS NOT NULL;`,
  // Posts come by id, whose time is that of the creation, also of those that are imported. Nodes of
  // older builds sort what they find by these indexes.
  `DROP INDEX inkwell.posts_of_author, inkwell.posts_of_status, inkwell.posts_of_author_status;
  CREATE INDEX posts_of_author ON inkwell.posts (author_id, id) WHERE author_id IS NOT NULL;
  CREATE INDEX posts_of_status ON inkwell.posts (status, id);
  CREATE INDEX posts_of_author_status ON inkwell.posts
    ((CAST(author_id AS text) || ' ' || status), id) WHERE author_id IS NOT NULL;`,
  // Comments that wait have no place (R48). Of others it is not where the order of ids has it.
  `CREATE TABLE inkwell.pending_comments (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    post_id uuid NOT NULL REFERENCES inkwell.posts (id) ON DELETE CASCADE,
    content text NOT NULL,
    created_at text NOT NULL,
    name text,
    author_id uuid
  );
  CREATE INDEX pending_comments_of_post ON inkwell.pending_comments (post_id, seq);
  ALTER TABLE inkwell.comments ADD COLUMN was_pending boolean;`,
  // A comment waits while those before it are committed: on a slow disk longer than other locks
  // are waited for, and as long as a statement may take.
  'ALTER FUNCTION inkwell.take_turn() SET lock_timeout = 0;',
];
