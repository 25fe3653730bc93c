/** The numbered steps of the schema of a SQLite file. */

import { removedPostsMax } from '../shared.ts';

/** The columns of records that are ordered by the time at which they were stored (R2). */
const ordered = 'seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE';

/**
 * Each step runs once per file, in this order. Steps are added, never changed; what only older
 * builds use is left out of new files.
 */
export const steps: readonly string[] = [
  `CREATE TABLE posts (${ordered}, title TEXT NOT NULL, content TEXT NOT NULL,
    status TEXT NOT NULL, created_at TEXT NOT NULL, author_id TEXT) STRICT;
  CREATE INDEX posts_of_author ON posts (author_id, seq) WHERE author_id IS NOT NULL;
  CREATE TABLE comments (${ordered}, post_id TEXT NOT NULL REFERENCES posts (id) ON DELETE CASCADE,
    content TEXT NOT NULL, created_at TEXT NOT NULL) STRICT;
  CREATE INDEX comments_of_post ON comments (post_id, seq);
  CREATE TABLE authors (id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL,
    created_at TEXT NOT NULL) STRICT;
  CREATE TABLE todos (${ordered}, title TEXT NOT NULL, completed INTEGER NOT NULL) STRICT;
  CREATE TABLE articles (id INTEGER PRIMARY KEY, document TEXT NOT NULL) STRICT;
  CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  INSERT INTO counters VALUES ('articles', 0);`,
  `CREATE TABLE accounts (username TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, email TEXT NOT NULL,
    roles TEXT NOT NULL, password_hash TEXT NOT NULL) STRICT;`,
  `CREATE TABLE files (seq INTEGER PRIMARY KEY AUTOINCREMENT, stored_name TEXT NOT NULL UNIQUE,
    disk_name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, change INTEGER NOT NULL) STRICT;`,
  '', // a table of older builds
  `CREATE TABLE upload_folder (one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id TEXT NOT NULL) STRICT;`,
  'CREATE INDEX posts_of_status ON posts (status, seq);',
  `CREATE INDEX posts_of_author_status ON posts ((CAST(author_id AS text) || ' ' || status), seq)
    WHERE author_id IS NOT NULL;`,
  // Writes under keys (R40). Times are those of the database's clock, in seconds.
  `CREATE TABLE requests (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, print TEXT NOT NULL,
    result TEXT NOT NULL, made INTEGER NOT NULL DEFAULT (unixepoch())) STRICT;`,
  // Keys of clients without a token, with a bound of their own. Who stored a file (R36): files
  // of before belong to nobody.
  `ALTER TABLE requests ADD COLUMN is_anonymous INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX requests_of_kind ON requests (is_anonymous, seq);
  ALTER TABLE files ADD COLUMN owner TEXT;`,
  // When posts were published (R49). Of the latest removed ones the dates stay, for pages that
  // begin after them.
  `ALTER TABLE posts ADD COLUMN published_at TEXT;
  UPDATE posts SET published_at = created_at WHERE status = 'PUBLISHED';
  CREATE TABLE removed_posts (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    published_at TEXT NOT NULL) STRICT;
  CREATE TRIGGER keep_date AFTER DELETE ON posts WHEN OLD.published_at IS NOT NULL BEGIN
    INSERT OR REPLACE INTO removed_posts (id, published_at) VALUES (OLD.id, OLD.published_at);
    DELETE FROM removed_posts
      WHERE seq <= (SELECT max(seq) FROM removed_posts) - ${removedPostsMax};
  END;`,
  // Who wrote a comment (R48).
  `ALTER TABLE comments ADD COLUMN name TEXT;
  ALTER TABLE comments ADD COLUMN author_id TEXT;`,
  `CREATE INDEX posts_published ON posts
    (CASE WHEN status = 'PUBLISHED' THEN published_at || ' ' || CAST(id AS text) END)
    WHERE published_at IS NOT NULL;
  CREATE INDEX posts_of_author_published ON posts
    (CASE WHEN status = 'PUBLISHED' THEN author_id END,
    CASE WHEN status = 'PUBLISHED' THEN published_at || ' ' || CAST(id AS text) END)
    WHERE published_at IS NOT NULL AND author_id IS NOT NULL;`,
  // Posts come by id, whose time is that of the creation, also of those that are imported. Older
  // builds name these indexes.
  `DROP INDEX posts_of_author;
  CREATE INDEX posts_of_author ON posts (author_id, id) WHERE author_id IS NOT NULL;
  DROP INDEX posts_of_status;
  CREATE INDEX posts_of_status ON posts (status, id);
  DROP INDEX posts_of_author_status;
  CREATE INDEX posts_of_author_status ON posts ((CAST(author_id AS text) || ' ' || status), id)
    WHERE author_id IS NOT NULL;`,
  // Comments that wait have no place (R48). Of others it is not where the order of ids has it.
  `CREATE TABLE pending_comments (${ordered},
    post_id TEXT NOT NULL REFERENCES posts (id) ON DELETE CASCADE,
    content TEXT NOT NULL, created_at TEXT NOT NULL, name TEXT, author_id TEXT) STRICT;
  CREATE INDEX pending_comments_of_post ON pending_comments (post_id, seq);
  ALTER TABLE comments ADD COLUMN was_pending INTEGER;`,
];
