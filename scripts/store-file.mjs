/** How build steps put the files of a page into dist/. */

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';

/** Already compressed; everything else is text. */
const packed = /\.(?:png|woff2?|ico)$/;

/** Texts are stored compressed only (name.gz). */
export async function storeFile(folder, name, content) {
  const path = join(folder, ...name.split('/'));
  await mkdir(dirname(path), { recursive: true });
  if (packed.test(name)) return writeFile(path, content);
  const level = constants.Z_BEST_COMPRESSION;
  return writeFile(`${path}.gz`, await promisify(gzip)(content, { level }));
}
