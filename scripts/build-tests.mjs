/**
 * Build step: makes dist-test/ out of test/, and dist-test/groups/, what `npm test` runs. Types are
 * only removed here; `npm run lint` checks them. A process of its own for each test file spends
 * more on its start, and on code that is not compiled to machine code yet, than most files on
 * their tests: so all files share a few processes, which run at the same time.
 * `npm run test:long` starts one process for each file.
 */

import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { toBuiltImports } from './built-imports.mjs';

/**
 * Which files share a process: each is in the first group that its path below test/ fits. Groups
 * are fixed, so that a test always has the same neighbours, and take about as long as each other.
 * There are more than processors, since a test that waits leaves its processor to others.
 */
const groups = [
  /^(?:http|domain|records|auth)\//,
  /^handlers\/[a-f]/,
  /^handlers\//,
  /^(?:graphql\/[a-q]|store\/[a-o])/,
  /^graphql\//,
  /^store\/postgres-/,
  /^store\//,
  /^commands\//,
  /^[^/]+$/,
];

const source = fileURLToPath(new URL('../test', import.meta.url));
const target = fileURLToPath(new URL('../dist-test', import.meta.url));

await rm(target, { recursive: true, force: true });
const all = (await readdir(source, { recursive: true })).filter((name) => name.endsWith('.ts'));
const { outputFiles } = await build({
  entryPoints: all.map((name) => join(source, name)),
  outbase: source,
  outdir: target,
  format: 'esm',
  // A failure names the line of the source where Node runs with --enable-source-maps.
  sourcemap: 'inline',
  write: false,
});
for (const { path, text } of outputFiles) {
  await mkdir(dirname(path), { recursive: true });
  // esbuild leaves the names of imported files as they are; those of the source end with .ts.
  await writeFile(path, toBuiltImports(text));
}

const files = all
  .map((name) => name.replaceAll(sep, '/'))
  .filter((name) => name.endsWith('.test.ts'))
  .toSorted((a, b) => (a < b ? -1 : 1));
const groupOf = (name) => {
  const group = groups.findIndex((paths) => paths.test(name));
  if (group === -1) throw new Error(`scripts/build-tests.mjs has no group for test/${name}`);
  return group;
};
await mkdir(join(target, 'groups'));
for (const at of groups.keys()) {
  const imports = files
    .filter((name) => groupOf(name) === at)
    .map((name) => `import '../${name.replace(/\.ts$/, '.js')}';\n`);
  await writeFile(join(target, 'groups', `${at + 1}.js`), imports.join(''));
}
