/**
 * Build step: makes dist/index.html, dist/openapi.json of docs/openapi.yaml, and dist/reference/, the page that shows
 * it, out of the development dependency `swagger-ui-dist` and the files in scripts/reference/. The script of the front
 * page is served beside them. That package needs another one, whose install script reports to its makers;
 * scripts/no-install-report/ stands in for it.
 */

import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { storeFile, storeShared } from './store-file.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const own = join(here, 'reference');
const target = join(here, '..', 'dist', 'reference');
const viewer = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const names = [
  'swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt',
  'swagger-ui.css',
  'LICENSE',
  'NOTICE',
];

await copyFile(join(here, 'home', 'index.html'), join(here, '..', 'dist', 'index.html'));
const written = await readFile(join(here, '..', 'docs', 'openapi.yaml'), 'utf8');
await writeFile(join(here, '..', 'dist', 'openapi.json'), JSON.stringify(parse(written)));

await rm(target, { recursive: true, force: true });
for (const name of names) {
  const shown = name.includes('.') ? name : `${name}.txt`;
  await storeFile(target, shown, await readFile(join(viewer, name)));
}
for (const name of await readdir(own)) {
  await storeFile(target, name, await readFile(join(own, name)));
}
await storeShared(target);
const script = 'home.js';
await storeFile(target, script, await readFile(join(here, 'home', script)));
console.log(`dist/reference: ${names.length} files of swagger-ui-dist and our own`);
