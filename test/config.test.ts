import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ConfigError, readConfig, settings } from '../dist/config.js';
import type { Setting } from '../dist/settings.js';
import { words } from './support/lists.ts';
import { createDirectory } from './support/uploads.ts';

const all = Object.values<Setting<unknown>>(settings);

function faultsOf(environment: Readonly<Record<string, string>>): string {
  try {
    readConfig(environment);
    return '';
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
}

test('without any setting, or with empty ones, the defaults hold, and nothing can change them', () => {
  const config = readConfig({});
  assert.deepEqual([config.port, config.tokenTtlSeconds], [8080, 60]);
  assert.ok(Object.isFrozen(config));
  assert.deepEqual(readConfig(Object.fromEntries(all.map(({ name }) => [name, '']))), config);
});

test('every setting has a name of its own, a default that it accepts, and a meaning', () => {
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
  for (const { name, fallback, meaning, parse } of all) {
    assert.match(name, /^[A-Z][A-Z_]*[A-Z]$/, name);
    assert.match(meaning, /\.$/, name);
    assert.ok(!(parse(fallback) instanceof Error), name);
  }
});

test('one error names every faulty setting, and repeats none of their values', () => {
  const faulty = {
    PORT: '65536',
    BODY_BYTES_MAX: '-1',
    DEMO_DATA: 'yes',
    REQUIRE_AUTH: 'reads',
    JWT_SECRET: 'short-secret',
    PUBLIC_URL: 'ftp://a',
    ALLOWED_ORIGINS: 'https://a.example, https://b.example/path',
    KEEP_ALIVE_SECONDS: '0',
  };
  const message = faultsOf(faulty);
  const names = Array.from(message.matchAll(/\b([A-Z]+_?[A-Z_]*) must/g), ([, name = '']) => name);
  assert.deepEqual(names.toSorted(), Object.keys(faulty).toSorted());
  assert.doesNotMatch(message, /short-secret|65536|ftp/);
  assert.equal(message.split('\n').length, names.length);
});

const mebibyte = 1_048_576;
const timer = [1, 2_147_483] as const;
/** The least and the greatest value; no bound above but that of whole numbers where it is left out. */
const bounds: Readonly<Record<string, readonly [number, number?]>> = {
  PORT: [0, 65_535],
  ADMIN_PORT: [0, 65_535],
  MEMORY_STORE_BYTES_MAX: [mebibyte],
  STORE_CONNECTIONS_MAX: [2],
  STORE_TIMEOUT_SECONDS: timer,
  TOKEN_TTL_SECONDS: [1, 31_536_000],
  SESSION_SECONDS_MAX: [1, 31_536_000],
  COMMENTS_PER_MINUTE_MAX: [1],
  LOGIN_FAILURES_MAX: [1],
  CONNECTIONS_MAX: [1],
  BODY_BYTES_MAX: [1_024],
  IDLE_TIMEOUT_SECONDS: timer,
  KEEP_ALIVE_SECONDS: timer,
  DRAIN_DELAY_SECONDS: [0, 3_600],
  RESPONSE_CACHE_BYTES_MAX: [0],
  REQUEST_MEMORY_BYTES_MAX: [mebibyte],
  UPLOAD_BYTES_MAX: [1_024],
  STORED_BYTES_MAX: [1_024],
  GRAPHQL_OBJECTS_MAX: [100],
};

test('numbers are whole and within their bounds, times within what a timer can hold', () => {
  const numbers = all.filter(({ name }) => /whole number/.test(faultsOf({ [name]: 'x' })));
  assert.deepEqual(numbers.map(({ name }) => name).toSorted(), Object.keys(bounds).toSorted());
  for (const [name, [min, max = Number.MAX_SAFE_INTEGER]] of Object.entries(bounds)) {
    for (const value of [min, max]) assert.equal(faultsOf({ [name]: `${value}` }), '', name);
    for (const value of [min - 1, max + 1]) {
      const fault = `${name} must be a whole number from ${min} to ${max}.`;
      assert.equal(faultsOf({ [name]: `${value}` }), fault, `${value}`);
    }
  }
  assert.equal(faultsOf({ PORT: '00080' }), '');
  for (const port of ['+1', '1.0', '1e3', '0x10', ' 1', '1 ', 'NaN', '١']) {
    assert.notEqual(faultsOf({ PORT: port }), '', port);
  }
});

test('flags, words, origins, base URLs and addresses are read or refused', () => {
  assert.equal(readConfig({ DEMO_DATA: 'false' }).demoData, false);
  assert.equal(readConfig({ DEMO_DATA: '1' }).demoData, true);
  assert.equal(readConfig({ REQUIRE_AUTH: 'writes' }).requireAuth, 'writes');
  // As a header can carry it, and as browsers write it.
  for (const [given, written] of [
    ['https://a.example:8443', 'https://a.example:8443'],
    ['http://例え.jp', 'http://xn--r8jz45g.jp'],
    ['HTTPS://Blog.Example:443', 'https://blog.example'],
  ] as const) {
    assert.equal(readConfig({ PUBLIC_URL: given }).publicUrl, written, given);
  }
  const separated = { ALLOWED_ORIGINS: ' https://a.example ,http://b:81,' };
  assert.deepEqual(readConfig(separated).allowedOrigins, ['https://a.example', 'http://b:81']);
  // Behind `file:` a page in a WebView of Android or in Electron.
  const odd =
    'capacitor://localhost chrome-extension://abcdefghijklmnop https://*.example.org:8443';
  for (const origin of words(`${odd} file:// null *`)) {
    assert.deepEqual(readConfig({ ALLOWED_ORIGINS: origin }).allowedOrigins, [origin]);
  }
  const given = ' 127.0.0.1, 10.0.0.0/8 ,2001:db8::/32,::1';
  const proxies = readConfig({ TRUSTED_PROXIES: given }).trustedProxies;
  assert.deepEqual(proxies, ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32', '::1']);
  for (const [name, texts] of Object.entries({
    PUBLIC_URL: `https://a/ https://a/b a.example https://a?b https:// http:///a https://user@a
      https://a\\b`,
    ALLOWED_ORIGINS: `** https://* https://a*.org https://a.*.org https://*.*.org *.org
      file:/// https:// https://a/ https://A.example https://a:443`,
    TRUSTED_PROXIES: '10.0.0.0/33 ::/129 10/8 10.0.0.1/ 10.0.0.1/8/8 proxy /8',
  })) {
    for (const text of words(texts)) {
      assert.match(faultsOf({ [name]: text }), new RegExp(`^${name} must be`), text);
    }
  }
  assert.notEqual(faultsOf({ PUBLIC_URL: 'https://a b' }), '');
});

test('a secret counts in bytes; a second one is as long, needs it, and is another one', () => {
  assert.equal(faultsOf({ JWT_SECRET: 'ü'.repeat(16) }), '');
  assert.notEqual(faultsOf({ JWT_SECRET: 'x'.repeat(31) }), '');
  const [one, two] = ['a'.repeat(32), 'b'.repeat(32)];
  assert.equal(faultsOf({ JWT_SECRET: one, JWT_SECRET_PREVIOUS: two }), '');
  assert.equal(faultsOf({ JWT_SECRET: one, JWT_SECRET_PREVIOUS: '' }), '');
  const refused = {
    'JWT_SECRET_PREVIOUS must be at least 32 bytes.': [one, 'b'.repeat(31)],
    'JWT_SECRET_PREVIOUS needs JWT_SECRET beside it.': ['', two],
    'JWT_SECRET_PREVIOUS must differ from JWT_SECRET.': [one, one],
    'JWT_SECRET must be at least 32 bytes.': ['short', two],
  };
  for (const [fault, [first = '', second = '']] of Object.entries(refused)) {
    assert.equal(faultsOf({ JWT_SECRET: first, JWT_SECRET_PREVIOUS: second }), fault, fault);
  }
});

test('comments without a token are for the modes in which others need one (R48)', () => {
  for (const COMMENTS of ['accounts', 'open', 'moderated']) {
    for (const [REQUIRE_AUTH, reason] of [
      ['writes', ''],
      ['owners', ''],
      ['none', 'everybody comments; writes and owners go with it'],
      ['members', 'nobody reads without a token; writes and owners go with it'],
    ] as const) {
      const isRefused = reason !== '' && COMMENTS !== 'accounts';
      const fault = `COMMENTS must be accounts where REQUIRE_AUTH is ${REQUIRE_AUTH}: ${reason}.`;
      assert.equal(faultsOf({ COMMENTS, REQUIRE_AUTH }), isRefused ? fault : '', COMMENTS);
    }
  }
  const fault = 'REQUIRE_AUTH must be one of: none, writes, owners, members.';
  assert.equal(faultsOf({ COMMENTS: 'moderated', REQUIRE_AUTH: 'owner' }), fault);
});

test('no text makes reading fail in another way', () => {
  fc.assert(
    fc.property(fc.constantFrom(...all.map(({ name }) => name)), fc.string(), (name, value) => {
      faultsOf({ [name]: value });
    }),
  );
});

test('a secret can be the text of a file', async (context) => {
  const folder = await createDirectory(context);
  const file = join(folder, 'jwt');
  await writeFile(file, `${'s'.repeat(32)}\n`);
  assert.equal(readConfig({ JWT_SECRET_FILE: file }).jwtSecret, 's'.repeat(32));
  assert.equal(readConfig({ JWT_SECRET_FILE: '' }).jwtSecret, '');

  assert.match(faultsOf({ JWT_SECRET_FILE: join(folder, 'none') }), /^JWT_SECRET_FILE: ENOENT/);
  const both = { JWT_SECRET_FILE: file, JWT_SECRET: 't'.repeat(32) };
  assert.equal(faultsOf(both), 'JWT_SECRET_FILE and JWT_SECRET exclude each other.');
  await writeFile(file, 'short');
  assert.equal(faultsOf({ JWT_SECRET_FILE: file }), 'JWT_SECRET must be at least 32 bytes.');
});
