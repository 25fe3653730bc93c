/** What the program does with arguments and settings beside serving. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { adviseOn } from '../../dist/commands/advice.js';
import { readConfig, settings } from '../../dist/config.js';
import { runCommand, runCommandHere } from '../support/command.js';
import { projectFolder } from '../support/source.js';

describe('arguments', { concurrency: true }, () => {
  it('--help lists every setting, and the names of files that have secret ones', async () => {
    const { code, output } = await runCommandHere(['--help']);
    assert.equal(code, 0);
    for (const { name } of Object.values(settings))
      assert.match(output, new RegExp(`^  ${name} `, 'm'));
    const files =
      'STORE_URL_FILE, STORE_LISTEN_URL_FILE, JWT_SECRET_FILE, JWT_SECRET_PREVIOUS_FILE';
    assert.ok(output.includes(files));
  });

  it('--version says which version it is, and `bin` names the program', async () => {
    const text = readFileSync(join(projectFolder, 'package.json'), 'utf8');
    const { version, bin } = JSON.parse(text) as { version: string; bin: Record<string, string> };
    assert.deepEqual(await runCommand(['--version']), {
      code: 0,
      output: `${version}\n`,
      errors: '',
    });
    assert.deepEqual(bin, { inkwell: 'dist/server.js' });
  });

  it('--check says what it would do, and no password', async () => {
    const env = { STORE_URL: 'postgres://ann:hidden@db.example/ink', JWT_SECERT: 'x', PORT: '1' };
    const { code, output } = await runCommandHere(['--check', '--port', '81', '--host', '::1'], {
      env,
    });
    assert.equal(code, 0);
    assert.match(output, /^listens on port 81 of ::1\n/);
    assert.match(output, /postgres:\/\/db\.example\/ink/);
    assert.match(output, /JWT_SECERT is no setting\. Is JWT_SECRET meant\?/);
    assert.doesNotMatch(output, /hidden/);
  });

  it('--check fails for a faulty setting, and for a file that cannot be read', async () => {
    const faulty = await runCommandHere(['--check', '--port', 'x']);
    assert.deepEqual([faulty.code, faulty.output], [1, '']);
    assert.match(faulty.errors, /^inkwell: PORT must .*\n$/);
    const missing = await runCommandHere(['--check'], { env: { USERS_FILE: '/nowhere' } });
    assert.deepEqual([missing.code, missing.output], [1, '']);
    assert.match(missing.errors, /^inkwell: USERS_FILE "\/nowhere" cannot be read: ENOENT\.\n$/);
  });

  it('that are not known give 2 and a line that names them', async () => {
    for (const [run, argument, message] of [
      [runCommandHere, '--prot', "inkwell: Unknown option '--prot'. Try --help.\n"],
      [
        runCommand,
        'x',
        'inkwell: there is no command "x", only accounts, backup, migrate. Try --help.\n',
      ],
    ] as const) {
      assert.deepEqual(await run([argument]), { code: 2, output: '', errors: message });
    }
  });
});

/** The warnings for these variables. */
function advice(environment: Readonly<Record<string, string>>): readonly string[] {
  return adviseOn(readConfig(environment), environment);
}

test('a variable whose name is nearly that of a setting is warned about', () => {
  for (const [given, meant] of [
    ['JWT_SECERT', 'JWT_SECRET'],
    ['REQUIRE_AUHT', 'REQUIRE_AUTH'],
    ['STORE_ULR', 'STORE_URL'],
    ['UPLOADS_DIR', 'UPLOAD_DIR'],
    ['TRUSTED_PROXY', undefined],
    ['log_level', 'LOG_LEVEL'],
    ['POST', undefined],
    ['HOME', undefined],
  ] as const) {
    const expected = meant === undefined ? [] : [`${given} is no setting. Is ${meant} meant?`];
    assert.deepEqual(advice({ [given]: 'x' }), expected, given);
  }
  const exact = Object.values(settings).map(({ name }) => [name, ''] as const);
  assert.deepEqual(advice(Object.fromEntries(exact)), []);
});

test('NODE_ENV that is nearly production is warned about', () => {
  for (const NODE_ENV of ['prod', 'Production', 'producton']) {
    assert.match(advice({ NODE_ENV }).join(), /^NODE_ENV is not "production"/, NODE_ENV);
  }
  for (const NODE_ENV of ['development', 'test', '']) assert.deepEqual(advice({ NODE_ENV }), []);
});

test('in production each choice that is open has a warning, elsewhere none', () => {
  const NODE_ENV = 'production';
  assert.deepEqual(
    advice({ NODE_ENV }).map((line) => line.split(' ')[0]),
    ['JWT_SECRET', 'REQUIRE_AUTH', 'DEMO_DATA'],
  );
  const closed = { JWT_SECRET: 'x'.repeat(32), REQUIRE_AUTH: 'writes', DEMO_DATA: 'false' };
  assert.deepEqual(advice({ NODE_ENV, ...closed }), []);
  assert.deepEqual(advice({}), []);
});
