/**
 * `node bench/beyond.mjs`: what the steps past one database bring, tried on PostgreSQL itself where
 * the service does not take them yet. Build the program and its tests first (`npm test` does).
 *
 * - Feed: N readers of the table of comments, as N nodes read it; beside it one reader that passes
 *   the comments on over N sockets, as a broker would.
 * - Retention: a tenth of a table of comments removed by DELETE, and as a partition.
 * - Replica: how long after its commit a row can be read on a standby.
 *
 * Options: --comments 1000000 (of the table), --readers 1,3,10,30, --events 1000 (comments that are
 * read), --inserts 2000 (that are timed, and followed to the standby).
 */

import { once } from 'node:events';
import { connect as connectTo, createServer } from 'node:net';
import { startPair } from '#support/postgres-pair.js';
import { startPostgres } from '#support/postgres.js';
import { connect } from '#support/session.js';
import { cpuNanoseconds, portOf } from './processes.mjs';
import { begin } from './report.mjs';
import { text } from './scenarios.mjs';

const { options, report } = begin({
  comments: 1_000_000,
  readers: '1,3,10,30',
  events: 1_000,
  inserts: 2_000,
});
const { comments: rows, events, inserts } = options;
const columns = `seq bigint GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL, post_id uuid NOT NULL,
  content text NOT NULL, created_at timestamptz NOT NULL`;
const values = `gen_random_uuid(), '01900000-0000-7000-8000-000000000001', '${text}'`;
const insert = (table) => `INSERT INTO ${table} (id, post_id, content, created_at)`;

const server = await startPostgres(['fsync=on', 'shared_buffers=256MB', 'max_wal_size=4GB']);
try {
  const url = await server.createDatabase();
  await measureFeed(url);
  await measureRetention(url);
} finally {
  await server.remove();
}
await measureReplica();
report.end();

/** Comments, one after the other; each reader looks for each of them. */
async function measureFeed(url) {
  const writer = connect(url);
  await writer.run(`CREATE TABLE feed (${columns}, PRIMARY KEY (seq))`);
  const head = ['readers', 'database µs a comment', 'with one reader and a broker', 'broker µs'];
  const tell = report.table('Readers of the table of comments', head, 0);
  for (const count of options.readers.split(',').map(Number)) {
    const each = await costOfFeed(
      url,
      writer,
      Array.from({ length: count }, () => () => {}),
    );
    const broker = await startBroker(count);
    const before = process.cpuUsage();
    const one = await costOfFeed(url, writer, [(row) => broker.send(row)]);
    const { user, system } = process.cpuUsage(before);
    broker.close();
    tell(String(count), each, one, (user + system) / events);
  }
  await writer.end();
}

/** Microseconds of the database for one comment; `takers` are given what each reader reads. */
async function costOfFeed(url, writer, takers) {
  const readers = takers.map((take) => ({ take, cursor: 0, sql: connect(url) }));
  const look = async (reader) => {
    const found = await reader.sql`SELECT * FROM feed WHERE seq > ${reader.cursor} ORDER BY seq`;
    for (const row of found) {
      reader.cursor = Number(row.seq);
      reader.take(row);
    }
  };
  await Promise.all(readers.map(look));
  const pids = await Promise.all(
    readers.map(async ({ sql }) => (await sql`SELECT pg_backend_pid() AS pid`)[0].pid),
  );
  const time = () => pids.reduce((sum, pid) => sum + cpuNanoseconds(pid), 0);
  const before = time();
  for (let sent = 0; sent < events; sent += 1) {
    await writer.run(`${insert('feed')} VALUES (${values}, now())`);
    await Promise.all(readers.map(look));
  }
  const cost = (time() - before) / 1000 / events;
  await Promise.all(readers.map(({ sql }) => sql.end()));
  return cost;
}

/** Passes each comment on to `count` sockets. */
async function startBroker(count) {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const sockets = [];
  listener.on('connection', (socket) => sockets.push(socket));
  const nodes = Array.from({ length: count }, () =>
    connectTo(portOf(listener), '127.0.0.1').resume(),
  );
  await Promise.all(nodes.map((node) => once(node, 'connect')));
  while (sockets.length < count) await new Promise((resolve) => setImmediate(resolve));
  return {
    send(row) {
      const line = `${JSON.stringify(row)}\n`;
      for (const socket of sockets) socket.write(line);
    },
    close() {
      for (const socket of [...nodes, ...sockets]) socket.destroy();
      listener.close();
    },
  };
}

async function measureRetention(url) {
  const sql = connect(url);
  const tenth = rows / 10;
  await sql.run(`CREATE TABLE plain (${columns}, PRIMARY KEY (seq))`);
  await sql.run('CREATE INDEX ON plain (post_id, seq)');
  await sql.run(`CREATE TABLE parted (${columns}, PRIMARY KEY (seq)) PARTITION BY RANGE (seq)`);
  await sql.run('CREATE INDEX ON parted (post_id, seq)');
  for (let part = 0; part <= 10; part += 1) {
    await sql.run(`CREATE TABLE part_${part} PARTITION OF parted
      FOR VALUES FROM (${part * tenth + 1}) TO (${(part + 1) * tenth + 1})`);
  }
  const head = ['table', 'insert, database µs', 'a tenth removed, ms', 'MiB of WAL'];
  const row = report.table(`Retention, ${rows} comments`, head, 1);
  const remove = {
    plain: `DELETE FROM plain WHERE seq <= ${tenth}; VACUUM plain`,
    parted: 'DROP TABLE part_0',
  };
  for (const [table, statements] of Object.entries(remove)) {
    await sql.run(
      `${insert(table)} SELECT ${values}, now() FROM generate_series(1, ${rows - inserts})`,
    );
    const [{ pid }] = await sql`SELECT pg_backend_pid() AS pid`;
    const before = cpuNanoseconds(pid);
    for (let count = 0; count < inserts; count += 1) {
      await sql.run(`${insert(table)} VALUES (${values}, now())`);
    }
    const cost = (cpuNanoseconds(pid) - before) / 1000 / inserts;
    await sql`CHECKPOINT`;
    const [{ start }] = await sql`SELECT pg_current_wal_insert_lsn()::text AS start`;
    const begun = performance.now();
    for (const statement of statements.split(';')) await sql.run(statement);
    const took = performance.now() - begun;
    const [{ mib }] = await sql`SELECT
      (pg_current_wal_insert_lsn() - ${String(start)}::pg_lsn) / 1048576 AS mib`;
    row(table, cost, took, Number(mib));
  }
  await sql.end();
}

/** Rows, one after the other, each asked for on the standby until it is there. */
async function measureReplica() {
  /** @type {(() => unknown)[]} */
  const ends = [];
  const pair = await startPair({ after: (end) => ends.push(end) });
  const [primary, standby] = [pair.primary, pair.standby].map((one) =>
    connect(one.url(pair.database)),
  );
  await primary.run(`CREATE TABLE replicated (${columns}, PRIMARY KEY (seq))`);
  while ((await standby`SELECT to_regclass('replicated') AS name`)[0].name === null);
  /** @type {number[]} */
  const delays = [];
  let late = 0;
  while (delays.length < inserts) {
    const [{ seq }] = await primary.run(
      `${insert('replicated')} VALUES (${values}, now()) RETURNING seq`,
    );
    const begun = performance.now();
    let looks = 0;
    while ((await standby`SELECT FROM replicated WHERE seq = ${String(seq)}`).length === 0)
      looks += 1;
    if (looks > 0) late += 1;
    delays.push(performance.now() - begun);
  }
  delays.sort((a, b) => a - b);
  const at = (share) => delays[Math.floor((delays.length - 1) * share)] ?? Number.NaN;
  const head = ['rows', 'not there at the first look', 'p50 ms', 'p99 ms', 'max ms'];
  report.table('Replica', head, 1)(String(inserts), late, at(0.5), at(0.99), at(1));
  await Promise.all([primary.end(), standby.end()]);
  for (const end of ends.toReversed()) await end();
}
