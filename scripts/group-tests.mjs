/**
 * Build step: makes dist-test/groups/, what `npm test` runs. A process of its own for each test
 * file spends more on its start, and on code that is not compiled to machine code yet, than most
 * files on their tests: so all files share a few processes, which run at the same time.
 * `npm run test:long` starts one process for each file.
 */

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** As many as `npm test` lets run at a time: some wait while others have the processors. */
const groupCount = 8;

const tests = fileURLToPath(new URL('../dist-test', import.meta.url));
const target = join(tests, 'groups');
await mkdir(target);
const all = await readdir(tests, { recursive: true });
const files = all.filter((name) => name.endsWith('.test.js')).toSorted();
for (let group = 0; group < groupCount; group += 1) {
  // Dealt out: the files of a folder take about as long as each other.
  const own = files.filter((_, at) => at % groupCount === group);
  const lines = own.map((name) => `import '../${name}';\n`);
  await writeFile(join(target, `${group + 1}.js`), lines.join(''));
}
