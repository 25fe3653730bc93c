/** A primary and its standby, at an address that leads to the one that is the primary. */

import { connect } from 'node:net';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { endTogether, startFront } from './postgres-proxy.ts';
import type { Ending } from './server.ts';
import { until } from './until.ts';

/** A copy of a server that follows it, until `detach` or its promotion. */
export function startStandby(
  { port }: PostgresServer,
  settings?: readonly string[],
): Promise<PostgresServer> {
  return startPostgres(settings, async (program) => {
    const from = ['-h', '127.0.0.1', '-p', String(port), '-U', 'inkwell'];
    await program('pg_basebackup', [...from, '-D', 'data', '-R', '-c', 'fast', '--no-sync']);
  });
}

/** Gone with the test that asked for them; `url` leads to the primary, and `database` is its name. */
export async function startPair(context: Ending) {
  const primary = await startPostgres();
  context.after(() => primary.remove());
  const database = new URL(await primary.createDatabase()).pathname.slice(1);
  const standby = await startStandby(primary);
  context.after(() => standby.remove());
  let { port } = primary;
  const address = await startFront(context, (near) => {
    const far = connect(port, '127.0.0.1');
    endTogether(near, far);
    near.pipe(far).pipe(near);
  });
  const leadToStandby = (): void => void ({ port } = standby);
  return {
    primary,
    standby,
    database,
    url: `postgres://inkwell@${address}/${database}`,
    leadToStandby,
    /** Makes a primary of the standby, and the address lead to it. */
    async promote() {
      await standby.query(standby.url('postgres'), 'SELECT pg_promote()');
      leadToStandby();
    },
  };
}

/** From now on the standby misses what is written: it lags. */
export async function detach(standby: PostgresServer): Promise<void> {
  const url = standby.url('postgres');
  await standby.query(url, "ALTER SYSTEM SET primary_conninfo = ''");
  await standby.query(url, 'SELECT pg_reload_conf()');
  const receivers = 'SELECT FROM pg_stat_wal_receiver';
  await until('the end of the receiver', async () => !(await standby.query(url, receivers)).length);
}

/** Waits until the standby has what was written before. */
export async function catchUp(primary: PostgresServer, standby: PostgresServer): Promise<void> {
  const url = primary.url('postgres');
  const [at] = await primary.query(url, 'SELECT pg_current_wal_insert_lsn()::text AS lsn');
  const behind = `SELECT WHERE pg_last_wal_replay_lsn() < '${String(at?.['lsn'])}'`;
  const there = standby.url('postgres');
  await until('the standby', async () => !(await standby.query(there, behind)).length, 60);
}
