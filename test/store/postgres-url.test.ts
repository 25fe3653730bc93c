/** `STORE_URL=postgres://…`: what it does not say clearly is refused, as libpq does. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '../../dist/store/postgres/open.js';
import { readUrl } from '../../dist/store/postgres/client/url.js';
import { driverOptions } from '../support/driver-options.ts';

const options = { ...driverOptions(), startSeconds: 0, mayCreate: true };
const url = 'postgres://ann:secret@192.0.2.1/blog';

test('an unknown, misspelt or doubled parameter is refused by its name', async () => {
  const misspelt =
    'sslMode SSLMODE ssl-mode ssl_mode tls currentSchema connection_limit constructor';
  for (const name of misspelt.split(' ')) {
    const message = `STORE_URL: it has the parameter ${name}, which is unknown.`;
    await assert.rejects(openStore(`${url}?${name}=1`, options), { message });
  }
  for (const parameters of ['sslmode=on', 'sslmode=Require', 'prepare=no', 'gssencmode=require']) {
    const message = `its ${parameters.split('=')[0]} has an unknown value.`;
    assert.throws(() => readUrl(`${url}?${parameters}`), { message });
  }
  assert.throws(() => readUrl(`${url}?sslmode=disable&sslmode=verify-full`), /sslmode twice/);
});

test('what may be a part of a password is not repeated', () => {
  for (const password of ['a?b', 'a#b', 'a?b=c', 'a?b&c']) {
    assert.throws(
      () => readUrl(`postgres://ann:${password}@192.0.2.1/blog`),
      (error: Error) => !/[bc]@|a[?#]b/.test(error.message),
    );
  }
});

test('what libpq and hosters write is taken', () => {
  for (const [parameters, hasSessions] of [
    ['sslmode=verify-full&sslrootcert=system', true],
    ['sslmode=require&channel_binding=require', true],
    ['ssl=true', true],
    ['connect_timeout=10&application_name=blog', true],
    ['target_session_attrs=read-write&gssencmode=disable', true],
    ['prepare=false', false],
    ['pgbouncer=true', false],
    ['sslmode=require&pgbouncer=true', false],
    ['pgbouncer=false', true],
  ] as const) {
    assert.equal(readUrl(`${url}?${parameters}`).hasSessions, hasSessions, parameters);
  }
});

test('a socket of Unix is taken as the package takes it', async () => {
  const folder = '/cloudsql/project:region:instance';
  for (const socket of [`?host=${folder}`, `?host=${encodeURIComponent(folder)}`]) {
    const refused = openStore(`postgres://ann:secret@/blog${socket}`, options);
    await assert.rejects(refused, /^Error: STORE_URL: the database at/);
  }
});
