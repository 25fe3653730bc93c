/**
 * A private PostgreSQL server from the installed binaries: its own folder, its own port, gone when
 * it is removed. PostgreSQL refuses to be run by root: then nobody runs it.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect, type Session } from './session.ts';
import { projectFolder } from './source.ts';
import { until } from './until.ts';

const run = promisify(execFile);

export interface PostgresServer {
  readonly port: number;
  /** Of a database that is there. */
  url(database: string): string;
  /** Of a new, empty database, beside others that are in use. */
  createDatabase(): Promise<string>;
  /** Of one that is emptied each time, ten times as fast: for tests that follow each other. */
  emptyDatabase(): Promise<string>;
  /** Of one whose tables stay and lose their rows each time, twice as fast again for a store. */
  clearedDatabase(): Promise<string>;
  /** One statement on a connection of its own. */
  query(url: string, text: string): Promise<readonly Record<string, unknown>[]>;
  /** Ends every connection, as an administrator does, and waits until they are gone. */
  cutConnections(): Promise<void>;
  /** SIGINT: as an administrator stops it. SIGQUIT: as if it had crashed. */
  stop(signal?: 'SIGINT' | 'SIGQUIT'): Promise<void>;
  /** On the same port and folder. */
  start(): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
  /** SIGSTOP and SIGCONT for the server and all its processes. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): Promise<void>;
}

/** The folder of the programs of PostgreSQL; empty where it is not installed. */
export const postgresFolder = findBinaries() ?? '';

/** Why tests on PostgreSQL cannot run here, or false. */
export const skipPostgres: string | false =
  postgresFolder === '' && 'PostgreSQL is not installed here (initdb and postgres)';

function findBinaries(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).map((name) => join(debian, name)) : [];
  const folders = [
    ...versions.map((folder) => join(folder, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ];
  return folders.find((folder) => ['initdb', 'postgres'].every((n) => existsSync(join(folder, n))));
}

const nobody = 65_534;
export const otherUser = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};

/** Makes `data` in the folder of a new server. */
type Make = (
  program: (name: string, args: readonly string[]) => Promise<unknown>,
  data: string,
) => Promise<void>;

/** A copy of what the first server of a test run made: `initdb` takes three times as long. */
const initialize: Make = async (program, data) => {
  const made = join(projectFolder, 'dist-test', 'postgres-data');
  if (existsSync(made)) {
    await run('cp', ['-a', made, data]);
    // In a copy of the project they belong to who has copied them, and the server would not start.
    if (otherUser.uid !== undefined) await run('chown', ['-R', `${nobody}:${nobody}`, data]);
    return;
  }
  const given = ['-D', 'data', '-U', 'inkwell', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  await program('initdb', [...given, '--locale=C.UTF-8', '--wal-segsize=1']);
  const copy = `${made}-${process.pid}`;
  await run('cp', ['-a', data, copy]);
  // Where several processes were the first, the copy of one stays.
  await rename(copy, made).catch(() => rm(copy, { recursive: true }));
};

/** `settings` as on the command line of `postgres`. The caller removes it. */
export async function startPostgres(
  settings: readonly string[] = ['fsync=off', 'autovacuum=off', 'shared_buffers=8MB'],
  make: Make = initialize,
): Promise<PostgresServer> {
  const binaries = findBinaries() ?? '';
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-postgres-'));
  if (otherUser.uid !== undefined) await chown(folder, nobody, nobody);
  const data = join(folder, 'data');
  const options = { cwd: folder, ...otherUser };
  await make((program, args) => run(join(binaries, program), args, options), data);
  const port = await findPort();
  const given = [`port=${port}`, 'listen_addresses=127.0.0.1,::1', 'unix_socket_directories='];
  const args = ['-D', data, ...[...given, ...settings].flatMap((setting) => ['-c', setting])];
  const url = (database: string): string => `postgres://inkwell@127.0.0.1:${port}/${database}`;

  let child: ChildProcess | undefined;
  let databases = 0;
  let emptied: Promise<string> | undefined;
  let cleared: Promise<string> | undefined;
  // Connections to the two databases that are prepared for each test anew.
  const kept = new Map<string, Session>();
  const prepare = async (database: string, text: string): Promise<string> => {
    const sql = kept.get(database) ?? connect(database);
    kept.set(database, sql);
    await sql.run(text);
    return database;
  };
  const endKept = async (): Promise<void> => {
    const ending = [...kept.values()];
    kept.clear();
    await Promise.all(ending.map((sql) => sql.end()));
  };
  const server: PostgresServer = {
    port,
    url,
    async createDatabase() {
      databases += 1;
      const name = `test_${databases}`;
      await server.query(url('postgres'), `CREATE DATABASE ${name}`);
      return url(name);
    },
    async emptyDatabase() {
      emptied ??= server.createDatabase();
      return prepare(await emptied, 'DROP SCHEMA IF EXISTS inkwell CASCADE');
    },
    async clearedDatabase() {
      cleared ??= server.createDatabase();
      return prepare(await cleared, clearing);
    },
    async query(database, text) {
      const sql = connect(database);
      try {
        return await sql.run(text);
      } finally {
        await sql.end();
      }
    },
    async cutConnections() {
      await endKept();
      await server.query(
        url('postgres'),
        `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
    },
    async start() {
      child = spawn(join(binaries, 'postgres'), args, { ...options, stdio: 'ignore' });
      const isThere = () => server.query(url('postgres'), 'SELECT 1').then(Boolean, () => false);
      await until('PostgreSQL', isThere, 120);
    },
    async stop(signal = 'SIGINT') {
      if (child === undefined) return;
      await endKept();
      const exited = once(child, 'exit');
      child.kill('SIGCONT');
      child.kill(signal);
      await exited;
      child = undefined;
    },
    async remove() {
      await server.stop('SIGQUIT');
      await rm(folder, { recursive: true, force: true });
    },
    async signal(signal) {
      // The parent stops first: it starts no more processes then.
      if (signal === 'SIGSTOP') child?.kill(signal);
      const children = await run('pgrep', ['-P', String(child?.pid)]);
      for (const pid of children.stdout.trim().split('\n')) process.kill(Number(pid), signal);
      child?.kill(signal);
    },
  };
  await server.start();
  return server;
}

/** Leaves what a new database has once its tables are made, if they are. */
const clearing = `
  DO $$ DECLARE name text; BEGIN
    IF to_regclass('inkwell.schema_state') IS NULL THEN RETURN; END IF;
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'inkwell'
      AND tablename NOT IN ('counters', 'article_turn', 'schema_state')
    LOOP
      EXECUTE 'DELETE FROM inkwell.' || name;
    END LOOP;
    UPDATE inkwell.counters SET value = 0;
    UPDATE inkwell.article_turn SET holder = NULL, ends = '-infinity';
    UPDATE inkwell.schema_state SET is_filled = false;
  END $$`;

export async function findPort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
