/** A private PgBouncer for one test, in front of a private PostgreSQL. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { findPort, otherUser } from './postgres.ts';
import type { Ending } from './server.ts';
import { until } from './until.ts';

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
const program = folders.map((folder) => join(folder, 'pgbouncer')).find(existsSync);

/** Why tests behind PgBouncer cannot run here, or false. */
export const skipPgBouncer: string | false =
  program === undefined && 'there is no pgbouncer on this machine';

/** Resolves with the URL of the same database through it; it goes with the test. */
export async function startPgBouncer(
  context: Ending,
  url: string,
  settings: Readonly<Record<string, string | number>>,
): Promise<string> {
  const { hostname, port: serverPort, username } = new URL(url);
  const port = await findPort();
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-pgbouncer-'));
  await chmod(folder, 0o755);
  const file = join(folder, 'pgbouncer.ini');
  const given = { listen_addr: '127.0.0.1', listen_port: port, auth_type: 'any', ...settings };
  const lines = Object.entries({ ...given, unix_socket_dir: '' }).map((pair) => pair.join(' = '));
  const database = `* = host=${hostname} port=${serverPort} user=${username}`;
  await writeFile(file, ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'));
  const child = spawn(program ?? '', ['-q', file], { stdio: 'ignore', ...otherUser });
  const exited = once(child, 'exit');
  context.after(async () => {
    child.kill('SIGKILL');
    await exited;
    await rm(folder, { recursive: true, force: true });
  });
  await until('pgbouncer', () => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}`);
    return isOpen(port);
  });
  const pooled = new URL(url);
  pooled.port = String(port);
  return pooled.href;
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const connected = once(socket, 'connect');
  return connected.then(Boolean, () => false).finally(() => socket.destroy());
}
