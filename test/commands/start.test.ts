/** What the program does with arguments and settings beside serving. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { findSettingWarnings } from '../../dist/commands/check.js';
import { readConfig, settings } from '../../dist/config.js';
import { runCommand, runCommandHere } from '../support/command.ts';
import { projectFolder } from '../support/source.ts';
import { skipSqlite } from '../support/sqlite.ts';
import { createDirectory } from '../support/uploads.ts';

describe('arguments', { concurrency: true }, () => {
  it('--help lists every setting, and the names of files that have secret ones', async () => {
    const { code, output } = await runCommandHere(['--help']);
    assert.equal(code, 0);
    for (const { name } of Object.values(settings))
      assert.match(output, new RegExp(`^  ${name} `, 'm'), name);
    const secrets = ['STORE_URL', 'STORE_LISTEN_URL', 'JWT_SECRET', 'JWT_SECRET_PREVIOUS'];
    assert.ok(output.includes(secrets.map((name) => `${name}_FILE`).join(', ')));
  });

  it('--version says which version it is, and `bin` names the program', async () => {
    const text = readFileSync(join(projectFolder, 'package.json'), 'utf8');
    const { version, bin } = JSON.parse(text) as { version: string; bin: Record<string, string> };
    const said = { code: 0, output: `${version}\n`, errors: '' };
    assert.deepEqual(await runCommand(['--version']), said);
    assert.deepEqual(bin, { inkwell: 'dist/server.js' });
  });

  it('--check says what it would do, and no password', async () => {
    const env = { STORE_URL: 'memory:', JWT_SECERT: 'x', PORT: '0', HOST: '::1', ADMIN_PORT: '0' };
    const { code, output, errors } = await runCommandHere(['--check'], { env });
    assert.equal(code, 0, errors);
    assert.match(output, /^listens on port 0 of ::1, health and metrics on port 0\n/);
    assert.match(output, /JWT_SECERT is not a setting\. Did you mean JWT_SECRET\?/);
  });

  it('--check fails where the start would, and changes nothing', async (t) => {
    const folder = await createDirectory(t);
    const busy = createServer().listen(0, '127.0.0.1');
    await once(busy, 'listening');
    t.after(() => busy.close());
    const { port } = busy.address() as AddressInfo; // it listens on TCP
    for (const [env, fault] of [
      [{ PORT: 'x' }, /^inkwell: PORT must .*\n$/],
      [{ USERS_FILE: '/nowhere' }, /^inkwell: USERS_FILE "\/nowhere" cannot be read: ENOENT\.\n$/],
      [{ UPLOAD_DIR: join(folder, 'no') }, /UPLOAD_DIR: no folder can be created in .*\(ENOENT\)/],
      [{ PORT: `${port}` }, /PORT: .* \(EADDRINUSE\)/],
      [{ ADMIN_PORT: `${port}` }, /ADMIN_PORT: .* \(EADDRINUSE\)/],
      [{ STORE_URL: 'postgres://ann:hidden@127.0.0.1:1/ink' }, /STORE_URL: .* does not answer/],
      ...(skipSqlite === false
        ? [[{ STORE_URL: `sqlite://${folder}/no/x.db` }, /STORE_URL: .*\(ENOENT\)/] as const]
        : []),
    ] as const) {
      await t.test(JSON.stringify(env), async () => {
        const given = { PORT: '0', HOST: '127.0.0.1', UPLOAD_DIR: folder, ...env };
        const { code, output, errors } = await runCommandHere(['--check'], { env: given });
        assert.deepEqual([code, output], [1, ''], errors);
        assert.match(errors, fault);
        assert.doesNotMatch(errors, /hidden/);
      });
    }
    const env = { PORT: '0', UPLOAD_DIR: folder, STORE_URL: `sqlite://${folder}/x.db` };
    if (skipSqlite === false) assert.equal((await runCommandHere(['--check'], { env })).code, 0);
    assert.deepEqual(await readdir(folder), []);
  });

  it('that are not known give 2 and a line that names them', async (t) => {
    const names = 'accounts, backup, migrate';
    for (const [run, argument, message] of [
      [runCommandHere, '--port', 'inkwell: there is no option "--port". Try --help.\n'],
      [runCommand, 'x', `inkwell: there is no command "x", only ${names}. Try --help.\n`],
    ] as const) {
      await t.test(argument, async () => {
        assert.deepEqual(await run([argument]), { code: 2, output: '', errors: message });
      });
    }
  });
});

/** The warnings for these variables. */
function advice(environment: Readonly<Record<string, string>>): readonly string[] {
  return findSettingWarnings(readConfig(environment), environment);
}

test('a variable whose name is nearly that of a setting is warned about', async (t) => {
  const meant = {
    JWT_SECERT: 'JWT_SECRET',
    REQUIRE_AUHT: 'REQUIRE_AUTH',
    STORE_ULR: 'STORE_URL',
    UPLOADS_DIR: 'UPLOAD_DIR',
    log_format: 'LOG_FORMAT',
  };
  for (const [given, name] of Object.entries(meant)) {
    await t.test(given, async () => {
      const expected = [`${given} is not a setting. Did you mean ${name}?`];
      assert.deepEqual(advice({ [given]: 'x' }), expected);
    });
  }
  for (const other of ['TRUSTED_PROXY', 'POST', 'HOME']) {
    assert.deepEqual(advice({ [other]: 'x' }), [], other);
  }
  const exact = Object.values(settings).map(({ name }) => [name, ''] as const);
  assert.deepEqual(advice(Object.fromEntries(exact)), []);
});

test('a setting that no longer exists is warned about, with what holds instead', () => {
  for (const name of ['LOG_LEVEL', 'WS_PING_SECONDS', 'WAITING_BYTES_MAX']) {
    const [line = '', ...others] = advice({ [name]: '1' });
    assert.match(line, new RegExp(`^${name} no longer exists: .*\\.$`), name);
    assert.deepEqual(others, [], name);
  }
});

test('NODE_ENV that is nearly production is warned about', () => {
  for (const NODE_ENV of ['prod', 'Production', 'producton']) {
    assert.match(advice({ NODE_ENV }).join(), /^NODE_ENV is not "production"/, NODE_ENV);
  }
  for (const NODE_ENV of ['development', 'test', ''])
    assert.deepEqual(advice({ NODE_ENV }), [], NODE_ENV);
});

test('in production each choice that is open has a warning, elsewhere none', () => {
  const NODE_ENV = 'production';
  const warned = advice({ NODE_ENV }).map((line) => line.split(' ')[0]);
  assert.deepEqual(warned, ['JWT_SECRET', 'REQUIRE_AUTH', 'DEMO_DATA']);
  const closed = { JWT_SECRET: 'x'.repeat(32), REQUIRE_AUTH: 'writes', DEMO_DATA: 'false' };
  assert.deepEqual(advice({ NODE_ENV, ...closed }), []);
  assert.deepEqual(advice({}), []);
});
