/** `npm test -- PATTERN`: which files it runs, and what a failure says. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { projectFolder } from './support/source.ts';

const run = (...args: string[]) =>
  promisify(execFile)(process.execPath, [join(projectFolder, 'scripts', 'test.mjs'), ...args], {
    // This process is a test itself: what it starts would report to the runner.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });

test('a pattern selects test files by their path', async () => {
  for (const pattern of ['test/memory-pool.test.ts', 'memory-p']) {
    const { stdout } = await run('--test-reporter=tap', pattern);
    assert.match(stdout, /^# fail 0$/m, pattern);
    assert.doesNotMatch(stdout, /router/, pattern);
  }
});

test('flags select tests by their name', async () => {
  const { stdout } = await run(
    '--test-reporter=tap',
    '--test-name-pattern=no such test',
    'memory-p',
  );
  assert.match(stdout, /^# fail 0$/m);
});

test('a pattern that no path contains is refused', async () => {
  await assert.rejects(
    run('no-such-file'),
    /No file in test\/ has a path that contains no-such-file/,
  );
});

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const skipSource =
  major > 22 || (major === 22 && minor >= 18) ? false : 'this Node runs no TypeScript';

test('a test file runs from its source', { skip: skipSource }, async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--test', '--test-reporter=tap', join(projectFolder, 'test', 'memory-pool.test.ts')],
    { env: { ...process.env, NODE_TEST_CONTEXT: undefined } },
  );
  assert.match(stdout, /^# pass [1-9]/m);
  assert.match(stdout, /^# fail 0$/m);
});

test('each test file is in one of the seven groups', () => {
  const built = join(projectFolder, 'dist-test');
  const groups = readdirSync(join(built, 'groups'));
  const names = ['1.js', '2.js', '3.js', '4.js', '5.js', '6.js', '7.js'];
  assert.deepEqual(groups.toSorted(), names);
  const imported = groups
    .flatMap((name) =>
      readFileSync(join(built, 'groups', name), 'utf8')
        .trim()
        .split('\n'),
    )
    .map((line) => line.replace(/^import '\.\.\/(.*)';$/, '$1'));
  const files = readdirSync(built, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.test.js'));
  assert.deepEqual(imported.toSorted(), files.toSorted());
});
