/**
 * Build step: makes dist/graphql-ui/ out of the development dependency `altair-static` and the
 * files in scripts/graphql-ui/, so that the browser UI ships with the program and needs no package
 * at run time. Texts are stored compressed only (name.gz): 6 MB become 1.6.
 */

import { readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storeFile, storeShared } from './store-file.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const own = join(here, 'graphql-ui');
const target = join(here, '..', 'dist', 'graphql-ui');
const altair = dirname(createRequire(import.meta.url).resolve('altair-static/package.json'));
const source = join(altair, 'build', 'dist');

/** The sandbox runs scripts of the visitor in a frame, which our policy does not allow. */
const unwanted = /^iframe-sandbox\/|^favicon|\.md$/;

async function copyGraphqlUi() {
  await rm(target, { recursive: true, force: true });
  const names = (await readdir(source, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(source, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((name) => !unwanted.test(name) && name !== 'index.html');
  await Promise.all(
    names.map(async (name) => storeFile(target, name, await readFile(join(source, name)))),
  );
  for (const name of await readdir(own))
    await storeFile(target, name, await readFile(join(own, name)));
  await storeShared(target);
  await storeFile(target, 'index.html', await makePage());
  await storeFile(target, 'LICENSE.txt', await readFile(join(altair, 'LICENSE')));
  console.log(`dist/graphql-ui: ${names.length} files of altair-static and our own`);
}

/** Altair's own page, with relative addresses, our style and our options. */
async function makePage() {
  const page = await readFile(join(source, 'index.html'), 'utf8');
  const ours = [
    ['<html>', '<html lang="en">'],
    [/<title>.*<\/title>/, '<title>Inkwell: GraphQL</title>'],
    [/<base href=".*" \/>/, '<base href="./" />'],
    ['<app-root>', '<app-root role="main">'],
    [/<link rel="icon".*>/, '<link rel="icon" type="image/svg+xml" href="icon.svg" />'],
    ['</head>', '  <link href="inkwell.css" rel="stylesheet" />\n  </head>'],
    ['</body>', '  <script type="module" src="login.js"></script>\n  </body>'],
    ['</body>', '  <script type="module" src="accessible.js"></script>\n  </body>'],
    ['</body>', '  <script type="module" src="options.js"></script>\n  </body>'],
  ];
  return ours.reduce((html, [old, fresh]) => {
    const changed = html.replace(old, fresh);
    if (changed === html) throw new Error(`altair-static's page has no ${old} any more`);
    return changed;
  }, page);
}

await copyGraphqlUi();
