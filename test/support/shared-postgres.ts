/** One PostgreSQL server for all test files of a process, gone with the last of their tests. */

import { after } from 'node:test';
import { type PostgresServer, startPostgres } from './postgres.js';

let shared: Promise<PostgresServer> | undefined;

/** A test that stops it starts it again. */
export function sharePostgres(): Promise<PostgresServer> {
  return (shared ??= startPostgres());
}

after(async () => (await shared)?.remove());
