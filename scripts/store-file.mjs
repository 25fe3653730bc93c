/** How build steps put the files of a page into dist/. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';

/** Already compressed; everything else is text. */
const packed = /\.(?:png|woff2?|ico)$/;

/** What several pages have. */
const shared = ['session.js', 'after-changes.js', 'icon.svg'];

/** Texts are stored compressed only (name.gz). */
export async function storeFile(folder, name, content) {
  const path = join(folder, ...name.split('/'));
  await mkdir(dirname(path), { recursive: true });
  if (packed.test(name)) return writeFile(path, content);
  const level = constants.Z_BEST_COMPRESSION;
  return writeFile(`${path}.gz`, await promisify(gzip)(content, { level }));
}

/** Each page has its own copy, because its addresses are relative. */
export async function storeShared(folder) {
  for (const name of shared) {
    await storeFile(folder, name, await readFile(new URL(name, import.meta.url)));
  }
}
