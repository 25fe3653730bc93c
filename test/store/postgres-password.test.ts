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
    toPassFile: (password: string): string => `${hostname}:${port}:*:serving:${password}\n`,
  };
}

const rotations = [
  ['a password', 'serving', [`ALTER ROLE serving PASSWORD 'new'`]],
  [
    'a role and its password',
    'second',
    [`CREATE ROLE second LOGIN PASSWORD 'new' IN ROLE serving`, 'ALTER ROLE serving NOLOGIN'],
  ],
] as const;

for (const [what, role, changes] of rotations) {
  test(`${what} that changes in STORE_URL_FILE is used from then on`, { skip }, async (t) => {
    const { query, cut, file, toUrl } = await startGuarded(t);
    await writeFile(file, toUrl('serving:old'));
    const node = await startNode(t, { STORE_URL_FILE: file });
    const ask = async (): Promise<number> => (await fetch(`${node.url}/posts`)).status;
    assert.equal(await ask(), 200);
    for (const change of changes) await query(change);
    await cut();
    assert.equal(await ask(), 503);
    await writeFile(file, toUrl(`${role}:new`));
    await until('an answer', async () => (await ask()) === 200);
  });
}

test(
  'a password that changes in the file of PGPASSFILE is used from then on',
  { skip },
  async (t) => {
    const { query, cut, file, toUrl, toPassFile } = await startGuarded(t);
    await writeFile(file, toPassFile('old'), { mode: 0o600 });
    const node = await startNode(t, { STORE_URL: toUrl('serving'), PGPASSFILE: file });
    const ask = async (): Promise<number> => (await fetch(`${node.url}/posts`)).status;
    assert.equal(await ask(), 200);
    await query(`ALTER ROLE serving PASSWORD 'new'`);
    await cut();
    assert.equal(await ask(), 503);
    await writeFile(file, toPassFile('new'));
    await until('an answer', async () => (await ask()) === 200);
  },
);

test(
  'a password that changes in STORE_LISTEN_URL_FILE is used from then on',
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
    await query(`ALTER ROLE hearing PASSWORD 'new'`);
    await cut();
    await until('no listener', async () => !(await isHeard()));
    await writeFile(file, toUrl('hearing:new'));
    await until('a listener with the new password', isHeard);
    await client.close();
  },
);
