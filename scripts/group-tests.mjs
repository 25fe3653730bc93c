/**
 * Build step: makes dist-test/groups/, what `npm test` runs. A process of its own for each test
 * file spends more on its start than most files on their tests, so the files of one folder share
 * a few processes. `npm run test:long` starts one process for each file.
 */

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Few enough for several groups to be at work at the same time until the end. */
const filesMax = 8;

const tests = fileURLToPath(new URL('../dist-test', import.meta.url));
const target = join(tests, 'groups');
await mkdir(target);
for (const folder of await readdir(tests, { withFileTypes: true })) {
  if (folder.isDirectory()) await groupFolder(folder.name);
}
await groupFolder('.');

/** Deals the files out, so that what takes long is not all in one group. */
async function groupFolder(folder) {
  const files = (await readdir(join(tests, folder))).filter((name) => name.endsWith('.test.js'));
  const groups = Math.ceil(files.length / filesMax);
  for (let group = 0; group < groups; group += 1) {
    const own = files.toSorted().filter((_, at) => at % groups === group);
    const lines = own.map((name) => `import '../${folder}/${name}';\n`);
    const name = `${folder === '.' ? 'test' : folder}-${group + 1}.js`;
    await writeFile(join(target, name), lines.join(''));
  }
}
