import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type Client, createConnect } from '../../dist/store/postgres/pool.js';
import { readUrl } from '../../dist/store/postgres/url.js';

function tls(parameters: string): unknown {
  const { url, options } = readUrl(`postgres://u:p@h/db?${parameters}`)[0] ?? {};
  assert.equal(url, 'postgres://u:p@h/db');
  if (typeof options?.ssl !== 'object') return options?.ssl;
  const { host, checkServerIdentity, rejectUnauthorized } = options.ssl;
  assert.equal(host, 'h');
  return [rejectUnauthorized, checkServerIdentity === undefined];
}

describe('a URL of PostgreSQL', () => {
  it('is left as it is where it asks for nothing special', () => {
    const url = 'postgres://u:p%40q@h:5433/db?application_name=x&options=endpoint%3Dy';
    assert.deepEqual(readUrl(url), [{ url, options: {} }]);
  });

  it('with several hosts asks each of them for the primary', () => {
    const options = { target_session_attrs: 'primary' };
    assert.deepEqual(readUrl('postgres://u:p@a:1,b,c:3/db?x=y'), [
      { url: 'postgres://u:p@a:1/db?x=y', options },
      { url: 'postgres://u:p@b/db?x=y', options },
      { url: 'postgres://u:p@c:3/db?x=y', options },
    ]);
    for (const given of ['primary', 'read-write']) {
      const url = `postgres://h/db?target_session_attrs=${given}`;
      assert.deepEqual(readUrl(url), [{ url: 'postgres://h/db', options }]);
    }
  });

  it('may name hosts by their IPv6 addresses', () => {
    const [first, second] = readUrl('postgres://u:p@[::1]:5433,[2001:db8::2]/db?sslmode=require');
    assert.deepEqual(
      [first, second].map((target) => [target?.options.host, target?.options.port]),
      [
        [['::1'], [5433]],
        [['2001:db8::2'], [5432]],
      ],
    );
    const ssl = first?.options.ssl;
    assert.equal(typeof ssl === 'object' && ssl.host, '::1');
  });

  it('says what is checked of the server, as libpq does', () => {
    const [checked, named] = [true, true];
    assert.equal(tls('sslmode=disable'), false);
    assert.equal(tls('sslmode=prefer&channel_binding=prefer'), 'prefer');
    assert.deepEqual(tls('sslmode=require'), [false, false]);
    assert.deepEqual(tls('sslmode=verify-ca'), [checked, false]);
    assert.deepEqual(tls('sslmode=verify-full'), [checked, named]);
    assert.deepEqual(tls('sslmode=require&sslrootcert=system'), [checked, named]);
    // In place of channel binding, which the package does not have.
    assert.deepEqual(tls('sslmode=require&channel_binding=require'), [checked, named]);
    assert.deepEqual(tls('channel_binding=require'), [checked, named]);
  });

  it('names files with what is trusted and what the node shows', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'inkwell-url-'));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, 'root.pem');
    await writeFile(file, 'pem');
    assert.deepEqual(tls(`sslmode=require&sslrootcert=${file}`), [true, false]);
    const all = `postgres://h/db?sslrootcert=${file}&sslcert=${file}&sslkey=${file}`;
    const pem = Buffer.from('pem');
    assert.deepEqual(readUrl(all)[0]?.options.ssl, {
      host: 'h',
      rejectUnauthorized: true,
      ca: pem,
      cert: pem,
      key: pem,
    });
    assert.throws(() => readUrl('postgres://h/db?sslrootcert=/nothing/here'), {
      message: /^STORE_URL: sslrootcert: ENOENT.*\/nothing\/here/,
    });
  });

  it('is refused where it asks for what there is not', () => {
    for (const [parameters, message] of [
      ['sslmode=allow', /sslmode=allow is not supported here, only disable, prefer, require,/],
      ['sslmode=disable&channel_binding=require', /sslmode=disable .*, only require, verify-ca,/],
      ['sslmode=prefer&sslrootcert=system', /sslmode=prefer is not supported here, only require/],
      ['channel_binding=maybe', /channel_binding=maybe is not supported here/],
      ['target_session_attrs=standby', /target_session_attrs=standby .* only primary, read-write/],
    ] as const) {
      assert.throws(() => readUrl(`postgres://h/db?${parameters}`), { message });
    }
    assert.throws(() => readUrl('postgres://h:x/db'), {
      message: 'STORE_URL: this is no URL of a PostgreSQL database.',
    });
  });

  it('has its hosts tried one after the other, and no faster the more ask', async () => {
    const connect = await createConnect('postgres://a,b,c/db');
    const make = (): Client => connect({ connectionsMax: 1, statementSeconds: 1 });
    const hostOf = ({ options }: Client): string | undefined => options.host[0];
    const [first, other] = [make(), make()];
    assert.deepEqual([hostOf(first), connect.passOver(first)], ['a', true]);
    const second = make();
    // The other one goes where the first has gone; from there it is too soon to go on.
    assert.deepEqual([connect.passOver(other), hostOf(make())], [true, 'b']);
    assert.deepEqual([connect.passOver(second), hostOf(make())], [false, 'b']);
    const alone = await createConnect('postgres://a/db');
    assert.equal(alone.passOver(alone({ connectionsMax: 1, statementSeconds: 1 })), false);
  });
});
