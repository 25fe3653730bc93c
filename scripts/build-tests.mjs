/**
 * Build step: makes dist-test/ out of test/, and dist-test/groups/, what `npm test` runs. Types are
 * only removed here; `npm run lint` checks them. A process of its own for each test file spends
 * more on its start, and on code that is not compiled to machine code yet, than most files on
 * their tests: so all files share a few processes, which run at the same time.
 * `npm run test:long` starts one process for each file.
 */

import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** As many as `npm test` runs at a time: two processors have work then while some wait. */
const groupCount = 4;

const source = fileURLToPath(new URL('../test', import.meta.url));
const target = fileURLToPath(new URL('../dist-test', import.meta.url));

await rm(target, { recursive: true, force: true });
const all = (await readdir(source, { recursive: true })).filter((name) => name.endsWith('.ts'));
await build({
  entryPoints: all.map((name) => join(source, name)),
  outbase: source,
  outdir: target,
  format: 'esm',
});

const files = all.filter((name) => name.endsWith('.test.ts')).map((name) => name.slice(0, -3));
// The longest files take about the longest, and come first, so that no group runs on for long.
const sized = await Promise.all(
  files.map(async (name) => ({ name, size: (await stat(join(source, `${name}.ts`))).size })),
);
const groups = Array.from({ length: groupCount }, () => ({ imports: '', size: 0 }));
for (const { name, size } of sized.toSorted((a, b) => b.size - a.size)) {
  const group = groups.reduce((least, one) => (one.size < least.size ? one : least));
  group.imports += `import '../${name}.js';\n`;
  group.size += size;
}
await mkdir(join(target, 'groups'));
for (const [at, { imports }] of groups.entries()) {
  await writeFile(join(target, 'groups', `${at + 1}.js`), imports);
}
