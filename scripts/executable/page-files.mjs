/**
 * Stands in for `node:fs` and `node:fs/promises` where the program reads its pages: in the executable
 * they are assets, named by their path from the folder of the program.
 */

import { dirname, relative, sep } from 'node:path';
import { getAssetKeys, getRawAsset } from 'node:sea';

function nameOf(path) {
  return relative(dirname(process.execPath), path).replaceAll(sep, '/');
}

export function existsSync(path) {
  return getAssetKeys().includes(nameOf(path));
}

export async function readFile(path) {
  if (existsSync(path)) return Buffer.from(getRawAsset(nameOf(path)));
  throw Object.assign(new Error(`The executable has no ${nameOf(path)}.`), { code: 'ENOENT' });
}

/** As with `recursive` and `withFileTypes`. */
export async function readdir(folder) {
  const names = getAssetKeys().filter((name) => name.startsWith(`${nameOf(folder)}/`));
  return names.map((name) => {
    const inFolder = name.slice(nameOf(folder).length + 1);
    return { isFile: () => true, parentPath: folder, name: inFolder };
  });
}
