/** Passwords and roles of the database are changed while a node runs. */

import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { skipPostgres as skip, startPostgres } from '../support/postgres.ts';
import { startNode } from '../support/program.ts';
import { until } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

/** A server that asks the roles `serving` and `hearing` for a password, which is `old` at first. */
async function startGuarded(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-password-'));
  await chmod(folder, 0o755);
  const rules = join(folder, 'hba.conf');
  const guarded = 'host all serving,hearing,second all scram-sha-256';
  await writeFile(rules, `${guarded}\nhost all all all trust\n`);
  const server = await startPostgres(['fsync=off', `hba_file=${rules}`]);
  t.after(async () => {
    await server.remove();
    await rm(folder, { recursive: true });
  });
  const database = await server.createDatabase();
  const query = (text: string) => server.query(database, text);
  const { hostname, port, pathname } = new URL(database);
  await query(`CREATE ROLE serving LOGIN PASSWORD 'old'`);
  await query(`CREATE ROLE hearing LOGIN PASSWORD 'old'`);
  await query(`ALTER DATABASE ${pathname.slice(1)} OWNER TO serving`);
  return {
    query,
    /** The connections of nodes end, and new ones need a password. */
    cut: () => server.cutConnections(),
    file: join(folder, 'secret'),
    toUrl: (account: string): string => database.replace('//inkwell@', `//${account}@`),
    toPassFile: (account: string): string => `${hostname}:${port}:*:${account}\n`,
  };
}

const alter = (role: string): string => `ALTER ROLE ${role} PASSWORD 'new'`;
const rotations = [
  ['STORE_URL_FILE', 'a password', 'serving', [alter('serving')]],
  ['PGPASSFILE', 'a password', 'serving', [alter('serving')]],
  [
    'STORE_URL_FILE',
    'a role and its password',
    'second',
    [`CREATE ROLE second LOGIN PASSWORD 'new' IN ROLE serving`, 'ALTER ROLE serving NOLOGIN'],
  ],
] as const;

for (const [setting, what, role, changes] of rotations) {
  test(`${what} that changes in ${setting} is used from then on`, { skip }, async (t) => {
    const { query, cut, file, toUrl, toPassFile } = await startGuarded(t);
    const isPassFile = setting === 'PGPASSFILE';
    const write = (account: string) =>
      writeFile(file, isPassFile ? toPassFile(account) : toUrl(account), { mode: 0o600 });
    await write('serving:old');
    const env = { [setting]: file, ...(isPassFile && { STORE_URL: toUrl('serving') }) };
    const node = await startNode(t, env);
    const ask = async (): Promise<number> => (await fetch(`${node.url}/posts`)).status;
    assert.equal(await ask(), 200);
    for (const change of changes) await query(change);
    await cut();
    assert.equal(await ask(), 503);
    await write(`${role}:new`);
    await until('an answer', async () => (await ask()) === 200);
  });
}

test(
  'a password of STORE_LISTEN_URL_FILE that changes is used from then on',
  { skip },
  async (t) => {
    const { query, cut, file, toUrl } = await startGuarded(t);
    await writeFile(file, toUrl('hearing:old'));
    const node = await startNode(t, { STORE_URL: toUrl('inkwell'), STORE_LISTEN_URL_FILE: file });
    const client = await connectReady(Number(new URL(node.url).port));
    client.send(subscribe('1', 'subscription { commentAdded { id } }'));
    const isHeard = async (): Promise<boolean> => {
      const text = `SELECT 1 FROM pg_stat_activity WHERE usename = 'hearing' AND query LIKE 'LISTEN%'`;
      return (await query(text)).length > 0;
    };
    await until('a listener', isHeard);
    await query(alter('hearing'));
    await cut();
    await until('no listener', async () => !(await isHeard()));
    await writeFile(file, toUrl('hearing:new'));
    await until('a listener with the new password', isHeard);
    await client.close();
  },
);
