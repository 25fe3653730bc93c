import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ConfigError, readConfig, settings } from '../dist/config.js';
import type { Setting } from '../dist/settings.js';
import { createDirectory } from './support/uploads.js';

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

test('without any setting the defaults hold, and nothing can change them', () => {
  const config = readConfig({});
  assert.equal(config.port, 8080);
  assert.equal(config.tokenTtlSeconds, 60);
  assert.ok(Object.isFrozen(config));
});

test('an empty setting counts as absent', () => {
  assert.deepEqual(
    readConfig(Object.fromEntries(all.map(({ name }) => [name, '']))),
    readConfig({}),
  );
});

test('every setting has a name of its own, a default that it accepts, and a meaning', () => {
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
  for (const { name, fallback, meaning, parse } of all) {
    assert.match(name, /^[A-Z][A-Z_]*[A-Z]$/);
    assert.match(meaning, /\.$/);
    assert.ok(!(parse(fallback) instanceof Error), name);
  }
});

test('one error names every faulty setting, and repeats none of their values', () => {
  const message = faultsOf({
    PORT: '65536',
    BODY_BYTES_MAX: '-1',
    DEMO_DATA: 'yes',
    REQUIRE_AUTH: 'reads',
    JWT_SECRET: 'short-secret',
    PUBLIC_URL: 'ftp://a',
    ALLOWED_ORIGINS: 'https://a.example, https://b.example/path',
    KEEP_ALIVE_SECONDS: '0',
  });
  const names = [...message.matchAll(/\b[A-Z]+_?[A-Z_]* must/g)].map(([found]) =>
    found.slice(0, -5),
  );
  assert.deepEqual(names.toSorted(), [
    'ALLOWED_ORIGINS',
    'BODY_BYTES_MAX',
    'DEMO_DATA',
    'JWT_SECRET',
    'KEEP_ALIVE_SECONDS',
    'PORT',
    'PUBLIC_URL',
    'REQUIRE_AUTH',
  ]);
  assert.doesNotMatch(message, /short-secret|65536|ftp/);
  assert.equal(message.split('\n').length, names.length);
});

test('numbers are whole and within their bounds', () => {
  for (const port of ['0', '1', '65535', '00080']) assert.equal(faultsOf({ PORT: port }), '');
  for (const port of ['65536', '-1', '+1', '1.0', '1e3', '0x10', ' 1', '1 ', 'NaN', '١']) {
    assert.match(faultsOf({ PORT: port }), /^PORT must be a whole number from 0 to 65535\.$/);
  }
});

test('no number of seconds is more than a timer can hold', () => {
  const timers = all.filter(({ name, unit }) => unit === 'seconds' && name !== 'TOKEN_TTL_SECONDS');
  assert.ok(timers.length >= 3);
  for (const { name } of timers) {
    // No delay is a choice, no time at all is not.
    assert.equal(faultsOf({ [name]: '0' }) === '', name === 'DRAIN_DELAY_SECONDS', name);
    assert.notEqual(faultsOf({ [name]: '2147484' }), '', name);
    assert.equal(faultsOf({ [name]: '1' }), '', name);
  }
});

test('flags, words, origins and base URLs are read or refused', () => {
  assert.equal(readConfig({ DEMO_DATA: 'false' }).demoData, false);
  assert.equal(readConfig({ DEMO_DATA: '1' }).demoData, true);
  assert.equal(readConfig({ REQUIRE_AUTH: 'writes' }).requireAuth, 'writes');
  assert.equal(
    readConfig({ PUBLIC_URL: 'https://a.example:8443' }).publicUrl,
    'https://a.example:8443',
  );
  // As a header can carry it, and as browsers write it.
  for (const [given, written] of [
    ['http://例え.jp', 'http://xn--r8jz45g.jp'],
    ['HTTPS://Blog.Example:443', 'https://blog.example'],
  ] as const) {
    assert.equal(readConfig({ PUBLIC_URL: given }).publicUrl, written);
  }
  const origins = readConfig({
    ALLOWED_ORIGINS: ' https://a.example ,http://b:81,',
  }).allowedOrigins;
  assert.deepEqual(origins, ['https://a.example', 'http://b:81']);
  for (const url of [
    'https://a/',
    'https://a/b',
    'a.example',
    'https://a?b',
    'https://',
    'http:///a',
    'https://user@a',
    'https://a\\b',
    'https://a b',
  ]) {
    assert.notEqual(faultsOf({ PUBLIC_URL: url }), '', url);
  }
  for (const origin of ['**', 'null', 'https://a/', 'https://A.example', 'https://a:443']) {
    assert.notEqual(faultsOf({ ALLOWED_ORIGINS: origin }), '', origin);
  }
});

test('trusted proxies are addresses and networks', () => {
  const given = ' 127.0.0.1, 10.0.0.0/8 ,2001:db8::/32,::1';
  const proxies = readConfig({ TRUSTED_PROXIES: given }).trustedProxies;
  assert.deepEqual(proxies, ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32', '::1']);
  for (const text of [
    '10.0.0.0/33',
    '::/129',
    '10/8',
    '10.0.0.1/',
    '10.0.0.1/8/8',
    'proxy',
    '/8',
  ]) {
    assert.notEqual(faultsOf({ TRUSTED_PROXIES: text }), '', text);
  }
});

test('a secret counts in bytes', () => {
  assert.equal(faultsOf({ JWT_SECRET: 'ü'.repeat(16) }), '');
  assert.notEqual(faultsOf({ JWT_SECRET: 'x'.repeat(31) }), '');
});

test('a second secret is as long as the first, needs it, and is another one', () => {
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
    assert.equal(faultsOf({ JWT_SECRET: first, JWT_SECRET_PREVIOUS: second }), fault);
  }
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
