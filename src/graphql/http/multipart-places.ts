/**
 * Puts the files of a multipart request where they belong. A client's path is walked, never
 * trusted: it must begin with `variables` and end where null stands.
 */

import { Kind, type TypeNode } from 'graphql';
import { AppError } from '../../errors.ts';
import { isObject } from '../../http/json.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import type { UploadedFile } from '../schema/uploaded-file.ts';
import { decodeRequest } from './params.ts';

type Files = ReadonlyMap<string, UploadedFile>;

/** `map`: part name → paths such as `variables.file`, or `0.variables.file` in a batch. */
export function placeByMap(body: unknown, files: Files, map: unknown): void {
  if (!isObject(map)) throw invalid('The map must be an object.');
  for (const [name, paths] of Object.entries(map)) {
    const file = files.get(name);
    if (file === undefined) throw invalid(`The map names the part ${name}, which was not sent.`);
    if (!Array.isArray(paths)) throw invalid(`The map must have a list of paths for ${name}.`);
    for (const path of paths) placeAt(body, path, file);
  }
  for (const name of files.keys()) {
    if (!Object.hasOwn(map, name)) throw invalid(`The part ${name} is not in the map.`);
  }
}

function placeAt(body: unknown, path: unknown, file: UploadedFile): void {
  if (typeof path !== 'string') throw invalid('A path of the map must be a string.');
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  if (keys[Array.isArray(body) ? 1 : 0] !== 'variables') throw badPath(path);
  let holder = body;
  for (const key of keys) holder = memberOf(holder, key);
  if (memberOf(holder, last) !== null) throw badPath(path);
  // It has the member: it is an object or an array, and this request's own.
  (holder as Record<string, unknown>)[last] = file;
}

/** An own member of an object or an item of an array; undefined where there is none. */
function memberOf(holder: unknown, key: string): unknown {
  if (Array.isArray(holder)) {
    return /^(?:0|[1-9][0-9]{0,8})$/.test(key) ? (holder[Number(key)] as unknown) : undefined;
  }
  return isObject(holder) && Object.hasOwn(holder, key) ? holder[key] : undefined;
}

/** Without a map: a variable of type Upload holds the name of its part. */
export function placeByName(body: unknown, files: Files, engine: Engine): void {
  const unplaced = new Set(files.keys());
  let allPrepared = true;
  for (const item of Array.isArray(body) ? (body as readonly unknown[]) : [body]) {
    const operation = prepareItem(item, engine);
    // What is wrong with an operation is told in its place, when it is run.
    if (operation === undefined) allPrepared = false;
    else for (const name of placeInOperation(operation, files)) unplaced.delete(name);
  }
  for (const name of allPrepared ? unplaced : []) {
    throw invalid(`No variable names the part ${name}.`);
  }
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

/** The names of the parts that found their place. */
function placeInOperation(operation: ReadyOperation, files: Files): readonly string[] {
  // What was parsed for this request alone may be changed.
  const variables = (operation.variables ?? {}) as Record<string, unknown>;
  const placed: string[] = [];
  for (const name of uploadVariables(operation)) {
    const part = variables[name];
    if (typeof part !== 'string') continue;
    variables[name] = files.get(part) ?? part;
    placed.push(part);
  }
  return placed;
}

/** The variables that the operation declares as Upload. */
function uploadVariables({ document, operationName }: ReadyOperation): readonly string[] {
  return document.definitions
    .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
    .filter(({ name }) => operationName === undefined || name?.value === operationName)
    .flatMap(({ variableDefinitions = [] }) => variableDefinitions)
    .filter(({ type }) => isUpload(type))
    .map(({ variable }) => variable.name.value);
}

function isUpload(type: TypeNode): boolean {
  if (type.kind === Kind.NON_NULL_TYPE) return isUpload(type.type);
  return type.kind === Kind.NAMED_TYPE && type.name.value === 'Upload';
}

function badPath(path: string): AppError {
  return invalid(`The map's path ${path} does not lead to a null under variables.`);
}

function invalid(message: string): AppError {
  return new AppError('invalid_graphql_request', message);
}
