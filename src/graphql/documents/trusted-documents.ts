/** Reads the manifest of trusted documents: a JSON object of hash (or any id) → document. */

import { readFile } from 'node:fs/promises';
import { ConfigError } from '../../config.ts';
import { isObject } from '../../http/json.ts';

/** Hash, or another id that clients use → text of a document. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** Returns undefined for an empty path. Throws a ConfigError that names the setting. */
export async function readTrustedDocuments(path: string): Promise<TrustedDocuments | undefined> {
  if (path === '') return undefined;
  const manifest = await readManifest(path);
  if (!isObject(manifest) || !Object.values(manifest).every((text) => typeof text === 'string')) {
    throw new ConfigError('TRUSTED_DOCUMENTS must hold a JSON object of hash → document.');
  }
  // Hashes are compared in lower case, because clients write them in either case.
  return new Map(
    Object.entries(manifest).map(([hash, text]) => [hash.toLowerCase(), String(text)]),
  );
}

async function readManifest(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    throw new ConfigError(`TRUSTED_DOCUMENTS names a file that ${why}.`, { cause: error });
  }
}
