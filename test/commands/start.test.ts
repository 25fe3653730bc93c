/** What the program does with arguments and settings beside serving. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { findSettingWarnings } from '../../dist/commands/check.js';
import { readConfig, settings } from '../../dist/config.js';
import { fails, runCommand, runCommandHere } from '../support/command.ts';
import { projectFolder } from '../support/source.ts';

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

  it('that are not known give 2 and a line that names them', async (t) => {
    const names = 'accounts, backup, export, import, migrate';
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

describe('commands', { concurrency: true }, () => {
  it('of a store need one that lasts', async () => {
    for (const line of ['export', 'import', 'backup x', 'migrate', 'accounts list']) {
      for (const STORE_URL of ['', 'memory:']) {
        const running = runCommandHere(line.split(' '), { env: { STORE_URL } });
        await fails(running, /STORE_URL: .*memory/);
      }
    }
    const env = { STORE_URL: 'postgres://127.0.0.1:1/a' };
    await fails(runCommandHere(['backup', 'x'], { env }), /STORE_URL: pg_dump makes/);
  });

  it('with other arguments are answered with the usage', async () => {
    for (const [lines, usage] of [
      ['export x', 'export >store.jsonl'],
      ['import x', 'import <store.jsonl'],
      ['backup,backup a b,backup --help,backup ', 'backup <file>'],
      ['migrate now', 'migrate'],
    ] as const) {
      const errors = `usage: node dist/server.js ${usage}\n`;
      for (const line of lines.split(',')) {
        const ended = await runCommandHere(line.split(' '));
        assert.deepEqual(ended, { code: 2, output: '', errors }, line);
      }
    }
  });
});

/** The warnings for these variables. */
function advice(environment: Readonly<Record<string, string>>): readonly string[] {
  return findSettingWarnings(readConfig(environment), environment);
}

test('a setting that no longer exists is warned about, with what holds instead', () => {
  for (const name of ['LOG_LEVEL', 'WS_PING_SECONDS', 'WAITING_BYTES_MAX']) {
    const [line = '', ...others] = advice({ [name]: '1' });
    assert.match(line, new RegExp(`^${name} no longer exists: .*\\.$`), name);
    assert.deepEqual(others, [], name);
  }
  const all = Object.values(settings).map(({ name }) => [name, ''] as const);
  assert.deepEqual(advice(Object.fromEntries(all)), []);
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
  assert.deepEqual(warned, ['STORE_URL', 'JWT_SECRET', 'REQUIRE_AUTH', 'DEMO_DATA']);
  const kept = { STORE_URL: 'sqlite:///a.db', UPLOAD_DIR: '/a' };
  const closed = {
    ...kept,
    JWT_SECRET: 'x'.repeat(32),
    REQUIRE_AUTH: 'writes',
    DEMO_DATA: 'false',
  };
  assert.deepEqual(advice({ NODE_ENV, ...closed }), []);
  assert.deepEqual(advice({}), []);
});
