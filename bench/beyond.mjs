/**
 * `node bench/beyond.mjs`: what the steps past one database bring, tried on PostgreSQL itself where
 * the service does not take them yet. Build the program and its tests first (`npm test` does).
 *
 * - Feed: N readers of the table of comments, as N nodes read it; beside it one reader that passes
 *   the comments on over N sockets, as a broker would.
 * - Retention: a tenth of a table of comments removed by DELETE, and as a partition.
 * - Replica: how long after its commit a row can be read on a standby.
 *
 * Options: --comments 1000000 (of the table), --readers 1,3,10,30.
 */

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { startPair, startPostgres } from '../dist-test/support/postgres.js';
import { cpuNanoseconds } from './processes.mjs';
import { text } from './scenarios.mjs';

const { values: options } = parseArgs({
  options: {
    comments: { type: 'string', default: '1000000' },
    readers: { type: 'string', default: '1,3,10,30' },
  },
});
const rows = Number(options.comments);
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

/** A thousand comments, 5 ms apart; each reader looks for each of them. */
async function measureFeed(url) {
  const writer = postgres(url, { max: 1 });
  await writer.unsafe(`CREATE TABLE feed (${columns}, PRIMARY KEY (seq))`);
  console.log('| Readers | database µs a comment | with one reader and a broker | broker µs |');
  console.log('|---:|---:|---:|---:|');
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
    console.log(
      `| ${count} | ${each.toFixed(0)} | ${one.toFixed(0)} | ${(user + system) / 1000} |`,
    );
  }
  await writer.end();
}

/** Microseconds of the database for one comment; `takers` are given what each reader reads. */
async function costOfFeed(url, writer, takers) {
  const readers = takers.map((take) => ({ take, cursor: 0, sql: postgres(url, { max: 1 }) }));
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
  for (let sent = 0; sent < 1000; sent += 1) {
    await writer.unsafe(`${insert('feed')} VALUES (${values}, now())`);
    await Promise.all(readers.map(look));
  }
  const cost = (time() - before) / 1000 / 1000;
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
    connect(listener.address().port, '127.0.0.1').resume(),
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
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  const tenth = rows / 10;
  await sql.unsafe(`CREATE TABLE plain (${columns}, PRIMARY KEY (seq))`);
  await sql.unsafe('CREATE INDEX ON plain (post_id, seq)');
  await sql.unsafe(`CREATE TABLE parted (${columns}, PRIMARY KEY (seq)) PARTITION BY RANGE (seq)`);
  await sql.unsafe('CREATE INDEX ON parted (post_id, seq)');
  for (let part = 0; part <= 10; part += 1) {
    await sql.unsafe(`CREATE TABLE part_${part} PARTITION OF parted
      FOR VALUES FROM (${part * tenth + 1}) TO (${(part + 1) * tenth + 1})`);
  }
  console.log('| Table | insert, database µs | a tenth removed, ms | MiB of WAL |');
  console.log('|---|---:|---:|---:|');
  const remove = {
    plain: `DELETE FROM plain WHERE seq <= ${tenth}; VACUUM plain`,
    parted: 'DROP TABLE part_0',
  };
  for (const [table, statements] of Object.entries(remove)) {
    await sql.unsafe(
      `${insert(table)} SELECT ${values}, now() FROM generate_series(1, ${rows - 2000})`,
    );
    const [{ pid }] = await sql`SELECT pg_backend_pid() AS pid`;
    const before = cpuNanoseconds(pid);
    for (let count = 0; count < 2000; count += 1) {
      await sql.unsafe(`${insert(table)} VALUES (${values}, now())`);
    }
    const cost = (cpuNanoseconds(pid) - before) / 1000 / 2000;
    await sql`CHECKPOINT`;
    const [{ start }] = await sql`SELECT pg_current_wal_insert_lsn()::text AS start`;
    const begun = performance.now();
    for (const statement of statements.split(';')) await sql.unsafe(statement);
    const took = performance.now() - begun;
    const [{ mib }] = await sql`SELECT
      (pg_current_wal_insert_lsn() - ${start}::pg_lsn) / 1048576 AS mib`;
    console.log(
      `| ${table} | ${cost.toFixed(0)} | ${took.toFixed(0)} | ${Number(mib).toFixed(1)} |`,
    );
  }
  await sql.end();
}

/** Two thousand rows, one after the other, each asked for on the standby until it is there. */
async function measureReplica() {
  const ends = [];
  const pair = await startPair({ after: (end) => ends.push(end) });
  const [primary, standby] = [pair.primary, pair.standby].map((one) =>
    postgres(one.url(pair.database), { max: 1 }),
  );
  await primary.unsafe(`CREATE TABLE replicated (${columns}, PRIMARY KEY (seq))`);
  while ((await standby`SELECT to_regclass('replicated') AS name`)[0].name === null);
  const delays = [];
  let late = 0;
  while (delays.length < 2000) {
    const [{ seq }] = await primary.unsafe(
      `${insert('replicated')} VALUES (${values}, now()) RETURNING seq`,
    );
    const begun = performance.now();
    let looks = 0;
    while ((await standby`SELECT FROM replicated WHERE seq = ${seq}`).length === 0) looks += 1;
    if (looks > 0) late += 1;
    delays.push(performance.now() - begun);
  }
  delays.sort((a, b) => a - b);
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) =>
    delays[Math.floor((delays.length - 1) * share)].toFixed(1),
  );
  console.log(
    `Replica: ${late} of ${delays.length} rows were not there at the first look; ` +
      `there after ${p50} ms (p50), ${p99} ms (p99), ${max} ms at most`,
  );
  await Promise.all([primary.end(), standby.end()]);
  for (const end of ends.toReversed()) await end();
}
