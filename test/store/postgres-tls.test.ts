/** PostgreSQL with TLS and a certificate of a private authority, as hosters have it. */

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { openStore } from '../../dist/store/open.js';
import { createServer, sql } from '../../dist/store/postgres/client/connection.js';
import { Pool } from '../../dist/store/postgres/client/pool.js';
import { runCommand } from '../support/command.ts';
import { withCode } from '../support/errors.ts';
import { testAtLength } from '../support/long.ts';
import { otherUser, type PostgresServer } from '../support/postgres.ts';
import { skipPostgres, startPostgres } from '../support/postgres.ts';
import { driverOptions } from '../support/driver-options.ts';
import { openOn } from '../support/stores.ts';
import { watching } from '../support/watching.ts';

const skipOpenSsl =
  spawnSync('openssl', ['version']).status !== 0 && 'there is no openssl on this machine';

/** An authority, and a certificate of it for 127.0.0.1 alone: `root.pem`, `server.pem` and keys. */
async function createCertificates(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-tls-'));
  await chmod(folder, 0o755);
  const make = (name: string, more: readonly string[]): Promise<unknown> => {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`, '-subj', `/CN=${name}`];
    const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...more];
    return promisify(execFile)('openssl', args, { cwd: folder });
  };
  await make('root', []);
  const ofRoot = ['-CA', 'root.pem', '-CAkey', 'root.key'];
  await make('server', [...ofRoot, '-addext', 'subjectAltName=IP:127.0.0.1']);
  const key = join(folder, 'server.key');
  await chmod(key, 0o600);
  if (otherUser.uid !== undefined) await chown(key, otherUser.uid, otherUser.gid);
  return folder;
}

describe('PostgreSQL with TLS', { skip: skipPostgres || skipOpenSsl }, () => {
  let folder: string;
  let server: PostgresServer;
  let url: string;
  let trusting: string;
  before(async () => {
    folder = await createCertificates();
    const files = [`ssl_cert_file=${folder}/server.pem`, `ssl_key_file=${folder}/server.key`];
    server = await startPostgres(['fsync=off', 'ssl=on', ...files]);
    url = await server.createDatabase();
    trusting = `sslrootcert=${folder}/root.pem`;
  });
  after(async () => {
    await server.remove();
    await rm(folder, { recursive: true });
  });

  const byName = (): string => url.replace('127.0.0.1', 'localhost');
  const taken: readonly (readonly [name: string, url: () => string])[] = [
    ['without a check', () => `${url}?sslmode=require`],
    ['of a trusted authority, by libpq’s rule', () => `${byName()}?sslmode=require&${trusting}`],
    ['that names the host', () => `${url}?sslmode=verify-full&${trusting}`],
    ['in place of channel binding', () => `${url}?channel_binding=require&${trusting}`],
  ];
  for (const [name, toUrl] of taken) {
    it(`takes a certificate ${name}`, async (t) => {
      const store = await openOn(t, toUrl());
      // One more connection listens for comments.
      store.comments.watch?.(() => undefined);
      await watching([store]);
      await store.ping();
      const connections = await server.query(
        url,
        `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE application_name = 'inkwell'`,
      );
      await store.close();
      assert.ok(connections.length > 1 && connections.every(({ ssl }) => ssl === true));
    });
  }

  const untrusted = /^STORE_URL: the server is not trusted: .*SIGN.*sslrootcert=FILE trusts/;
  const otherName = /^STORE_URL: the server is not trusted: .*ERR_TLS_CERT_ALTNAME_INVALID/;
  const noAuthority = /^STORE_URL: .*specifying a CA with sslrootcert/;
  const binding = 'sslmode=require&channel_binding=require';
  const refused: readonly (readonly [name: string, url: () => string, message: RegExp])[] = [
    ['of an authority that is not trusted', () => `${url}?sslmode=verify-full`, untrusted],
    ['of no authority', () => `${url}?sslmode=verify-ca`, noAuthority],
    ['of another host', () => `${byName()}?sslmode=verify-full&${trusting}`, otherName],
    ['of another host, for binding', () => `${byName()}?${binding}&${trusting}`, otherName],
  ];
  for (const [name, toUrl, message] of refused) {
    it(`refuses a certificate ${name}, and does not wait for another one`, async () => {
      await assert.rejects(openStore(toUrl(), driverOptions()), { message });
    });
  }

  it('is unavailable while it has such a certificate', async (t) => {
    const reached = await createServer(`${url}?sslmode=verify-full`);
    const pool = new Pool(reached, { log: () => undefined, connectionsMax: 1, timeoutSeconds: 5 });
    t.after(() => pool.close());
    await assert.rejects(pool.read(sql`SELECT 1`), withCode('unavailable'));
  });

  testAtLength('is trusted by NODE_EXTRA_CA_CERTS too', async () => {
    const env = { STORE_URL: `${url}?sslmode=verify-full` };
    assert.equal((await runCommand(['migrate'], { env })).code, 1);
    const trusted = { ...env, NODE_EXTRA_CA_CERTS: join(folder, 'root.pem') };
    const { code, errors } = await runCommand(['migrate'], { env: trusted });
    assert.deepEqual([code, errors], [0, '']);
  });
});
