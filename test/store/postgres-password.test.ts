/** Passwords and roles of the database are changed while a node runs. */

import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { isLong } from '../support/long.ts';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.ts';
import { startNode } from '../support/program.ts';
import { until } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

const alter = (role: string): string => `ALTER ROLE ${role} PASSWORD 'new'`;
const rotations = [
  ['STORE_URL_FILE', 'a password', 'serving', alter('serving')],
  ['PGPASSFILE', 'a password', 'serving', alter('serving')],
  [
    'STORE_URL_FILE',
    'a role and its password',
    'second',
    `CREATE ROLE second LOGIN PASSWORD 'new' IN ROLE serving; ALTER ROLE serving NOLOGIN`,
  ],
] as const;

suite('a server that asks for passwords', { skip }, () => {
  let folder: string;
  let server: PostgresServer;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inkwell-password-'));
    await chmod(folder, 0o755);
    const rules = join(folder, 'hba.conf');
    const guarded = 'host all serving,hearing,second all scram-sha-256';
    await writeFile(rules, `${guarded}\nhost all all all trust\n`);
    server = await startPostgres(['fsync=off', `hba_file=${rules}`]);
    await server.query(server.url('postgres'), 'CREATE ROLE serving; CREATE ROLE hearing');
  });
  after(async () => {
    await server.remove();
    await rm(folder, { recursive: true });
  });

  /** A database of `serving`, which `hearing` may listen in; both have the password `old`. */
  async function open() {
    const database = await server.createDatabase();
    const { host, pathname } = new URL(database);
    const query = (text: string) => server.query(database, text);
    await query(`ALTER ROLE serving LOGIN PASSWORD 'old'; ALTER ROLE hearing LOGIN PASSWORD 'old';
      ALTER DATABASE ${pathname.slice(1)} OWNER TO serving`);
    const toUrl = (account: string): string => database.replace('//inkwell@', `//${account}@`);
    return { query, toUrl, host, file: join(folder, 'secret') };
  }

  for (const [setting, what, role, change] of isLong ? rotations : rotations.slice(0, 1)) {
    test(`${what} that changes in ${setting} is used from then on`, async (t) => {
      const { query, toUrl, host, file } = await open();
      const isPassFile = setting === 'PGPASSFILE';
      const write = (account: string) =>
        writeFile(file, isPassFile ? `${host}:*:${account}\n` : toUrl(account), { mode: 0o600 });
      await write('serving:old');
      const env = { [setting]: file, ...(isPassFile && { STORE_URL: toUrl('serving') }) };
      const node = await startNode(t, env);
      const ask = async (): Promise<number> => (await fetch(`${node.url}/posts`)).status;
      assert.equal(await ask(), 200);
      await query(change);
      await server.cutConnections();
      assert.equal(await ask(), 503);
      await write(`${role}:new`);
      await until('an answer', async () => (await ask()) === 200);
    });
  }

  test('a password that changes in STORE_LISTEN_URL_FILE is used from then on', async (t) => {
    const { query, toUrl, file } = await open();
    await writeFile(file, toUrl('hearing:old'));
    const node = await startNode(t, { STORE_URL: toUrl('inkwell'), STORE_LISTEN_URL_FILE: file });
    const client = await connectReady(Number(new URL(node.url).port));
    client.send(subscribe('1', 'subscription { commentAdded { id } }'));
    const listeners = `SELECT FROM pg_stat_activity WHERE usename = 'hearing' AND query LIKE 'LISTEN%'`;
    const isHeard = async (): Promise<boolean> => (await query(listeners)).length > 0;
    await until('a listener', isHeard);
    await query(alter('hearing'));
    await server.cutConnections();
    await until('no listener', async () => !(await isHeard()));
    await writeFile(file, toUrl('hearing:new'));
    await until('a listener with the new password', isHeard);
    await client.close();
  });
});
