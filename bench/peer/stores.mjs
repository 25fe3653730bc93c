/** The records of the peer: in memory, in a SQLite file, or in PostgreSQL. Every post has one author. */

const author = { id: '00000000-0000-4000-8000-000000000001', name: 'user' };

export function openStore(url) {
  if (url.startsWith('postgres')) return openPostgres(url);
  return url === '' ? openMemory() : openSqlite(url.replace('sqlite://', ''));
}

function openMemory() {
  const posts = new Map();
  /** @type {{ id: string }[]} Oldest first. */
  const list = [];
  const comments = new Map();
  return {
    post: (id) => posts.get(id),
    page(limit, after) {
      const end = after === undefined ? list.length : list.findIndex(({ id }) => id === after);
      const start = limit === undefined ? 0 : Math.max(0, end - limit);
      return list.slice(start, end).toReversed();
    },
    addPost(post) {
      const stored = { ...post, authorId: author.id };
      posts.set(post.id, stored);
      list.push(stored);
      comments.set(post.id, []);
    },
    addComment(comment) {
      comments.get(comment.postId)?.push(comment);
      return comments.has(comment.postId);
    },
    authors: (ids) => new Map(ids.map((id) => [id, author])),
    commentsOf: (ids) => new Map(ids.map((id) => [id, comments.get(id) ?? []])),
  };
}

const columns = 'id, title, content, status, created_at AS "createdAt", author_id AS "authorId"';

async function openSqlite(file) {
  /** @type {string} No constant, because the types of the oldest Node do not have the module. */
  const name = 'node:sqlite';
  const { DatabaseSync } = await import(name);
  const database = new DatabaseSync(file);
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE authors (id TEXT PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE posts (
      seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
      content TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL, author_id TEXT);
    CREATE TABLE comments (
      seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, post_id TEXT NOT NULL,
      content TEXT NOT NULL, created_at TEXT NOT NULL);
    CREATE INDEX comments_of_post ON comments (post_id, seq)`);
  database.prepare('INSERT INTO authors VALUES (?, ?)').run(author.id, author.name);
  const prepare = (sql) => database.prepare(sql);
  const byId = prepare(`SELECT ${columns} FROM posts WHERE id = ?`);
  const first = prepare(`SELECT ${columns} FROM posts ORDER BY seq DESC LIMIT ?`);
  const next = prepare(`SELECT ${columns} FROM posts
    WHERE seq < (SELECT seq FROM posts WHERE id = ?) ORDER BY seq DESC LIMIT ?`);
  const insert = prepare(`INSERT INTO posts (id, title, content, status, created_at, author_id)
    VALUES (?, ?, ?, ?, ?, ?)`);
  const comment = prepare(`INSERT INTO comments (id, post_id, content, created_at)
    SELECT ?, id, ?, ? FROM posts WHERE id = ?`);
  const authorById = prepare('SELECT id, name FROM authors WHERE id = ?');
  const ofPost = prepare('SELECT id, content FROM comments WHERE post_id = ? ORDER BY seq');
  return {
    post: (id) => byId.get(id),
    page: (limit = -1, after) => (after === undefined ? first.all(limit) : next.all(after, limit)),
    addPost: ({ id, title, content, status, createdAt }) =>
      insert.run(id, title, content, status, createdAt, author.id),
    addComment: ({ id, postId, content, createdAt }) =>
      comment.run(id, content, createdAt, postId).changes === 1,
    // A statement costs no message here: one for each record is what a person writes.
    authors: (ids) => new Map([...new Set(ids)].map((id) => [id, authorById.get(id)])),
    commentsOf: (ids) => new Map(ids.map((id) => [id, ofPost.all(id)])),
  };
}

async function openPostgres(url) {
  const { default: pg } = await import('pg');
  // As many connections as Inkwell has. Dates are text.
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  await pool.query(`
    CREATE TABLE IF NOT EXISTS authors (id uuid PRIMARY KEY, name text NOT NULL);
    CREATE TABLE IF NOT EXISTS posts (
      seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL UNIQUE,
      title text NOT NULL, content text NOT NULL, status text NOT NULL, created_at text NOT NULL,
      author_id uuid REFERENCES authors);
    CREATE TABLE IF NOT EXISTS comments (
      seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL UNIQUE,
      post_id uuid NOT NULL REFERENCES posts (id), content text NOT NULL,
      created_at text NOT NULL);
    CREATE INDEX IF NOT EXISTS comments_of_post ON comments (post_id, seq);
    INSERT INTO authors VALUES ('${author.id}', '${author.name}') ON CONFLICT DO NOTHING`);
  /** Prepared once on each connection. */
  const ask = async (name, text, values) => (await pool.query({ name, text, values })).rows;
  return {
    post: async (id) => (await ask('post', `SELECT ${columns} FROM posts WHERE id = $1`, [id]))[0],
    page: (limit, after) =>
      after === undefined
        ? ask('first', `SELECT ${columns} FROM posts ORDER BY seq DESC LIMIT $1`, [limit ?? null])
        : ask(
            'next',
            `SELECT ${columns} FROM posts WHERE seq < (SELECT seq FROM posts WHERE id = $1)
              ORDER BY seq DESC LIMIT $2`,
            [after, limit ?? null],
          ),
    addPost: ({ id, title, content, status, createdAt }) =>
      ask(
        'add',
        `INSERT INTO posts (id, title, content, status, created_at, author_id)
          VALUES ($1, $2, $3, $4, $5, $6)`,
        [id, title, content, status, createdAt, author.id],
      ),
    addComment: async ({ id, postId, content, createdAt }) => {
      const added = await ask(
        'comment',
        `INSERT INTO comments (id, post_id, content, created_at)
          SELECT $1, id, $3, $4 FROM posts WHERE id = $2 RETURNING id`,
        [id, postId, content, createdAt],
      );
      return added.length === 1;
    },
    authors: async (ids) => {
      const found = await ask(
        'authors',
        'SELECT id, name FROM authors WHERE id = ANY ($1::uuid[])',
        [[...new Set(ids)]],
      );
      return new Map(found.map((one) => [one.id, one]));
    },
    commentsOf: async (ids) => {
      const found = await ask(
        'comments',
        `SELECT id, content, post_id AS "postId" FROM comments WHERE post_id = ANY ($1::uuid[])
          ORDER BY seq`,
        [ids],
      );
      return group(found);
    },
  };
}

/** The comments of each post. (`Map.groupBy` is not in Node 20.) */
function group(comments) {
  const groups = new Map();
  for (const comment of comments) {
    const together = groups.get(comment.postId);
    if (together === undefined) groups.set(comment.postId, [comment]);
    else together.push(comment);
  }
  return groups;
}
