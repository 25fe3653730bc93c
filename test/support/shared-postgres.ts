/** One PostgreSQL server for all test files of a process, gone with the last of their tests. */

import { after } from 'node:test';
import { type PostgresServer, startPostgres } from './postgres.ts';

let shared: Promise<PostgresServer> | undefined;

/** A test that stops it starts it again. */
export function sharePostgres(): Promise<PostgresServer> {
  return (shared ??= startPostgres());
}

/** The same server, which the first of these calls starts. */
export const database: Omit<PostgresServer, 'port' | 'url' | 'remove'> = {
  createDatabase: async () => (await sharePostgres()).createDatabase(),
  emptyDatabase: async () => (await sharePostgres()).emptyDatabase(),
  clearedDatabase: async () => (await sharePostgres()).clearedDatabase(),
  query: async (url, text) => (await sharePostgres()).query(url, text),
  cutConnections: async () => (await sharePostgres()).cutConnections(),
  stop: async (signal) => (await sharePostgres()).stop(signal),
  start: async () => (await sharePostgres()).start(),
  signal: async (signal) => (await sharePostgres()).signal(signal),
};

after(async () => (await shared)?.remove());
