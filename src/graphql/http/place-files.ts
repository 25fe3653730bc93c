/**
 * Puts the files of a multipart request into the variables of its operations. A client's path is
 * not trusted: it must lead through `variables` and end at a null.
 */

import type { AppError } from '../../errors.ts';
import { isObject } from '../../http/json.ts';
import type { UploadedFile } from '../schema/uploaded-file.ts';
import { invalidRequest } from './params.ts';

/** `map`: part name → paths such as `variables.file`, or `0.variables.file` in a batch. */
export function placeFiles(
  operations: unknown,
  files: ReadonlyMap<string, UploadedFile>,
  map: unknown,
): void {
  if (!isObject(map)) throw invalidRequest('The map must be an object.');
  for (const [name, paths] of Object.entries(map)) {
    const file = files.get(name);
    if (file === undefined)
      throw invalidRequest(`The map names the part ${name}, which was not sent.`);
    if (!Array.isArray(paths))
      throw invalidRequest(`The map must have a list of paths for ${name}.`);
    for (const path of paths) placeAt(operations, path, file);
  }
  for (const name of files.keys()) {
    if (!Object.hasOwn(map, name)) throw invalidRequest(`The part ${name} is not in the map.`);
  }
}

function placeAt(operations: unknown, path: unknown, file: UploadedFile): void {
  if (typeof path !== 'string') throw invalidRequest('A path of the map must be a string.');
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  if (keys[Array.isArray(operations) ? 1 : 0] !== 'variables') throw badPath(path);
  let holder = operations;
  for (const key of keys) holder = memberOf(holder, key);
  if (memberOf(holder, last) !== null) throw badPath(path);
  // The holder has this member, so it is an object or an array, and belongs to this request alone.
  (holder as Record<string, unknown>)[last] = file;
}

/** Returns an own member of an object, or an item of an array; undefined if there is none. */
function memberOf(holder: unknown, key: string): unknown {
  if (Array.isArray(holder)) {
    return /^(?:0|[1-9][0-9]{0,8})$/.test(key) ? (holder[Number(key)] as unknown) : undefined;
  }
  return isObject(holder) && Object.hasOwn(holder, key) ? holder[key] : undefined;
}

function badPath(path: string): AppError {
  return invalidRequest(`The map's path ${path} does not lead to a null under variables.`);
}
