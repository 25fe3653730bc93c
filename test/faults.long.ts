/** `npm run faults`: what it says of faults that are noticed, that live, and that are not placed. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectFolder } from './support/source.ts';
import { createDirectory } from './support/uploads.ts';

test('faults that are noticed, that live and that are not there are told apart', async (t) => {
  const folder = await createDirectory(t);
  const rows = { noticed: '5 5_000', lives: '5 5.0', 'is missing': '7 8' };
  const texts = Object.entries(rows).map(([name, values]) => {
    const [before, after] = values.split(' ');
    const lines = [`-turnMilliseconds = ${before};`, `+turnMilliseconds = ${after};`];
    return [`# ${name} (SECURITY.md)`, ...lines, 'test: scheduler.test.ts'].join('\n');
  });
  await writeFile(join(folder, 'own.diff'), `== scheduler.ts\n${texts.join('\n')}\n`);
  const script = join(projectFolder, 'scripts', 'faults.mjs');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [script, `--faults=${folder}`, '--jobs=1'],
    // This process is a test itself: what it starts would report to the runner.
    { env: { ...process.env, NODE_TEST_CONTEXT: undefined }, encoding: 'utf8' },
  );
  assert.match(stdout, /scheduler\.ts \| assertion scheduler\.test\.ts: /);
  assert.match(stdout, /^own \| lives \| scheduler\.ts \| lived/m);
  assert.match(stdout + stderr, /^not placed: is missing/m);
  assert.match(stdout, /^\| all \| 3 \| 1 \| 1 \| 0 \|$/m);
  assert.equal(status, 1);
});
