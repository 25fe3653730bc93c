/** `npm run faults`: what it says of faults that are noticed, that live, and that are not placed. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectFolder } from './support/source.ts';
import { createDirectory } from './support/uploads.ts';

interface Ended {
  readonly code: number;
  readonly output: string;
}

const place = (...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    const script = join(projectFolder, 'scripts', 'faults.mjs');
    const child = execFile(
      process.execPath,
      [script, ...args],
      // This process is a test itself: what it starts would report to the runner.
      { env: { ...process.env, NODE_TEST_CONTEXT: undefined } },
      (_error, stdout, stderr) => {
        resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
      },
    );
  });

test('faults that are noticed are counted, with the test that noticed each', async (t) => {
  const folder = await createDirectory(t);
  const rest = 'promise: SECURITY.md\nfile: scheduler.ts\ntest: scheduler.test.ts';
  const noticed = `# noticed\n${rest}\n-turnMilliseconds = 5;\n+turnMilliseconds = 5_000;`;
  await writeFile(join(folder, 'own.diff'), `${noticed}\n`);
  const { code, output } = await place(`--faults=${folder}`);
  assert.match(output, /scheduler\.ts \| assertion scheduler\.test\.ts: /);
  assert.match(output, /^\| all \| 1 \| 1 \| 0 \| 0 \|$/m);
  assert.equal(code, 0, output);
});

test('a fault that lives, and one whose text is not there, are failures', async (t) => {
  const folder = await createDirectory(t);
  const rest = 'promise: SECURITY.md\nfile: scheduler.ts\ntest: scheduler.test.ts';
  const lives = `# lives\n${rest}\n-turnMilliseconds = 5;\n+turnMilliseconds = 5.0;`;
  const missing = `# is missing\n${rest}\n-turnMilliseconds = 7;\n+turnMilliseconds = 8;`;
  await writeFile(join(folder, 'own.diff'), `${lives}\n\n${missing}\n`);
  const { code, output } = await place(`--faults=${folder}`, '--jobs=1');
  assert.match(output, /^own \| lives \| scheduler\.ts \| lived/m);
  assert.match(output, /^not placed: is missing/m);
  assert.match(output, /^\| all \| 2 \| 0 \| 1 \| 0 \|$/m);
  assert.equal(code, 1);
});
