/**
 * Puts the files of a multipart request into its variables. A client's path is not trusted: it must
 * begin with `variables` and end at a null.
 */

import { getOperationAST, print } from 'graphql';
import { AppError } from '../../errors.ts';
import { isObject } from '../../http/json.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import type { UploadedFile } from '../schema/uploaded-file.ts';
import { decodeRequest, invalidRequest } from './params.ts';

type Files = ReadonlyMap<string, UploadedFile>;

/** `map`: part name → paths such as `variables.file`, or `0.variables.file` in a batch. */
export function placeByMap(body: unknown, files: Files, map: unknown): void {
  if (!isObject(map)) throw invalidRequest('The map must be an object.');
  for (const [name, paths] of Object.entries(map)) {
    const file = files.get(name);
    if (file === undefined)
      throw invalidRequest(`The map names the part ${name}, which was not sent.`);
    if (!Array.isArray(paths))
      throw invalidRequest(`The map must have a list of paths for ${name}.`);
    for (const path of paths) placeAt(body, path, file);
  }
  for (const name of files.keys()) {
    if (!Object.hasOwn(map, name)) throw invalidRequest(`The part ${name} is not in the map.`);
  }
}

function placeAt(body: unknown, path: unknown, file: UploadedFile): void {
  if (typeof path !== 'string') throw invalidRequest('A path of the map must be a string.');
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  if (keys[Array.isArray(body) ? 1 : 0] !== 'variables') throw badPath(path);
  let holder = body;
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

/** Without a map, a variable of type Upload names its part. */
export function placeByName(body: unknown, files: Files, engine: Engine): void {
  const unplaced = new Set(files.keys());
  for (const item of Array.isArray(body) ? (body as readonly unknown[]) : [body]) {
    const operation = prepareItem(item, engine);
    if (operation !== undefined) placeInOperation(operation, files, unplaced);
    // Errors of an operation are reported when it runs.
    else unplaced.clear();
  }
  for (const name of unplaced) throw invalidRequest(`No variable names the part ${name}.`);
}

function prepareItem(item: unknown, engine: Engine): ReadyOperation | undefined {
  try {
    const prepared = engine.prepare(decodeRequest(item));
    return prepared.kind === 'ready' ? prepared : undefined;
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

function placeInOperation(operation: ReadyOperation, files: Files, unplaced: Set<string>): void {
  // Variables were parsed for this request alone, so they may be changed.
  const variables = (operation.variables ?? {}) as Record<string, unknown>;
  const definition = getOperationAST(operation.document, operation.operationName);
  for (const { variable, type } of definition?.variableDefinitions ?? []) {
    const part = variables[variable.name.value];
    if (typeof part !== 'string' || !/^Upload!?$/.test(print(type))) continue;
    variables[variable.name.value] = files.get(part) ?? part;
    unplaced.delete(part);
  }
}

function badPath(path: string): AppError {
  return invalidRequest(`The map's path ${path} does not lead to a null under variables.`);
}
