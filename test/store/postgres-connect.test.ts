/** Which server a URL reaches, and how. */

import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { openStore } from '../../dist/store/open.js';
import { openPostgresStore } from '../../dist/store/postgres/open.js';
import { skipPostgres as skip } from '../support/postgres.js';
import { sharePostgres } from '../support/shared-postgres.js';
import { watching } from '../support/watching.js';
import { driverOptions } from './driver-suite.js';

test('a server without TLS is refused at once where TLS is required', { skip }, async () => {
  const server = await sharePostgres();
  const url = await server.createDatabase();
  for (const parameter of [
    'sslmode=prefer',
    'sslmode=require',
    'sslmode=verify-full',
    'channel_binding=require',
  ]) {
    await assert.rejects(openStore(`${url}?${parameter}`, driverOptions()), {
      message: 'STORE_URL: The server does not support SSL connections',
    });
  }
});

const addresses = Object.values(networkInterfaces()).flat();
const skipIpv6 =
  skip || (!addresses.some((one) => one?.address === '::1') && 'there is no IPv6 on this machine');

test('a server is reached at an IPv6 address', { skip: skipIpv6 }, async () => {
  const both = await sharePostgres();
  const url = await both.createDatabase();
  const usual = `127.0.0.1:${both.port}`;
  const store = await openStore(url.replace(usual, `[::1]:${both.port}`), driverOptions());
  // One more connection listens for comments.
  store.comments.watch?.(() => undefined);
  await watching([store]);
  const connections = await both.query(
    url,
    `SELECT DISTINCT host(client_addr) AS address FROM pg_stat_activity
     WHERE application_name = 'inkwell'`,
  );
  await store.close();
  assert.deepEqual(connections, [{ address: '::1' }]);
  await assert.rejects(
    openPostgresStore('postgres://[::1]:1/db', { ...driverOptions(), startSeconds: 0 }),
    /^Error: STORE_URL: the database at \[::1\]:1 does not answer: connect ECONNREFUSED/,
  );
});

test('a URL is refused where it is none, names several hosts, or a file that is not there', async () => {
  for (const [url, message] of [
    ['postgres://h:x/db', /^STORE_URL: Invalid URL$/],
    ['postgres://u:p,q@a,b:1/db', /^STORE_URL: it names several hosts, and has to name one/],
    ['postgres://h/db?sslrootcert=/nothing/here', /^STORE_URL: ENOENT.*\/nothing\/here/],
  ] as const) {
    await assert.rejects(openStore(url, driverOptions()), { message });
  }
});
