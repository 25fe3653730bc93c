/** Reads the manifest of trusted documents: a JSON object of hash (or any id) → document. */

import { readFile } from 'node:fs/promises';
import { ConfigError } from '../../config.ts';
import { isObject } from '../../http/json.ts';

/** Hash, or another id that clients use → text of a document. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** Returns undefined for an empty path. Throws a ConfigError that names the setting. */
export async function readTrustedDocuments(path: string): Promise<TrustedDocuments | undefined> {
  if (path === '') return undefined;
  const manifest = toMap(await readManifest(path));
  if (!isObject(manifest) || !Object.values(manifest).every((text) => typeof text === 'string')) {
    const message =
      'TRUSTED_DOCUMENTS must hold a JSON object of hash → document, or a manifest of Apollo.';
    throw new ConfigError(message);
  }
  // Hashes are compared in lower case, because clients write them in either case.
  return new Map(
    Object.entries(manifest).map(([hash, text]) => [
      hash.toLowerCase().replace(/^sha256:/, ''),
      String(text),
    ]),
  );
}

/** Takes the manifest of Apollo's tools too: `{format, version, operations: [{id, body, …}]}`. */
function toMap(manifest: unknown): unknown {
  if (!isObject(manifest) || !Array.isArray(manifest['operations'])) return manifest;
  const operations = manifest['operations'].map((operation: unknown) => {
    const { id, body } = isObject(operation) ? operation : {};
    return [String(id), body] as const;
  });
  return Object.fromEntries(operations);
}

async function readManifest(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    throw new ConfigError(`TRUSTED_DOCUMENTS names a file that ${why}.`, { cause: error });
  }
}
