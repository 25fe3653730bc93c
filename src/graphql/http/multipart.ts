/**
 * GraphQL multipart requests (R26): `operations` as JSON, files as parts, and a `map` that assigns
 * the files to variables, in any order.
 */

import type { Config } from '../../config.ts';
import { receiveFile } from '../../domain/files.ts';
import type { AppError } from '../../errors.ts';
import { isObject, parseJson } from '../../http/json.ts';
import type { HttpRequest } from '../../http/message.ts';
import { readMultipart, readPart } from '../../http/multipart/read.ts';
import type { Upload, Uploads } from '../../store/files/uploads.ts';
import { UploadedFile } from '../schema/scalars.ts';
import { decodeBody, invalidRequest, type Requests } from './messages.ts';

export interface MultipartDeps {
  readonly uploads: Pick<Uploads, 'begin'>;
  /** Names files that come without a name (Spec §4.4 rule 2). */
  readonly createUuid: () => string;
  readonly config: Config;
}

/**
 * Receives all parts. Returns what decodes the operations, in which each file is an UploadedFile;
 * `upload` is closed when they have run. Both throw AppErrors for an invalid multipart request.
 */
export async function readOperations(
  request: HttpRequest,
  upload: Upload,
  { config, createUuid, beforeFile }: MultipartDeps & { readonly beforeFile: () => Promise<void> },
): Promise<() => Requests> {
  const texts = new Map<string, Buffer>();
  const files = new Map<string, UploadedFile>();
  await readMultipart(request, config, async (head, content) => {
    const { name } = head;
    if (texts.has(name) || files.has(name)) {
      throw invalidRequest(`The part ${name} was sent twice.`);
    }
    if (name === 'operations' || name === 'map') {
      texts.set(name, await readPart(content, config.bodyBytesMax, request.reservation));
      return;
    }
    await beforeFile();
    const received = await receiveFile(upload, { ...head, content }, createUuid);
    if (received === undefined) return;
    const { facts, written } = received;
    // A file can be used in several places: it is stored once.
    let stored: ReturnType<Upload['commit']> | undefined;
    const store: UploadedFile['store'] = (by) => (stored ??= upload.commit([written], by));
    files.set(name, new UploadedFile({ facts, storedName: written.storedName, store }));
  });
  const [operations, map] = [texts.get('operations'), texts.get('map')];
  if (operations === undefined) throw invalidRequest('The part operations is missing.');
  return () => {
    const body = parseJson(operations);
    placeFiles(body, files, map?.length ? parseJson(map) : {});
    return decodeBody(body);
  };
}

/**
 * Puts the files into the variables of the operations. `map`: part name → paths such as
 * `variables.file`, or `0.variables.file` in a batch. A client's path is not trusted: it must lead
 * through `variables` and end at a member, whatever that holds.
 */
function placeFiles(
  operations: unknown,
  files: ReadonlyMap<string, UploadedFile>,
  map: unknown,
): void {
  // PHP writes a map with the names 0, 1, … as a list.
  const places = Array.isArray(map) ? Object.fromEntries(map.entries()) : (map ?? {});
  if (!isObject(places)) throw invalidRequest('The map must be an object.');
  const placeAt = createPlacing(operations);
  for (const [name, paths] of Object.entries(places)) {
    const file = files.get(name);
    if (file === undefined)
      throw invalidRequest(`The map names the part ${name}, which was not sent.`);
    if (!Array.isArray(paths))
      throw invalidRequest(`The map must have a list of paths for ${name}.`);
    for (const path of paths) placeAt(path, file);
  }
  for (const [name, { facts }] of files) {
    // A form has more than its files: text beside is ignored, as in R18.
    const isText = facts['fileName'] === '' && facts['contentType'] === 'text/plain';
    if (isText || Object.hasOwn(places, name)) continue;
    throw invalidRequest(`The part ${name} is not in the map.`);
  }
}

/** Returns a function that puts a file at a path. */
function createPlacing(operations: unknown): (path: unknown, file: UploadedFile) => void {
  const isBatch = Array.isArray(operations);
  /** By operation: each text is read once, however many paths lead into its variables. */
  const variables = new Map<unknown, ReadonlySet<string>>();
  const hasVariable = (operation: unknown, name: string): boolean => {
    const names = variables.get(operation) ?? variablesIn(memberOf(operation, 'query'));
    variables.set(operation, names);
    return names.has(name);
  };
  return (path, file) => {
    if (typeof path !== 'string') throw invalidRequest('A path of the map must be a string.');
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    const [operation, [variablesKey, ...inside]] = isBatch
      ? [memberOf(operations, keys[0] ?? ''), keys.slice(1)]
      : [operations, keys];
    if (variablesKey !== 'variables') throw badPath(path);
    let holder = memberOf(operation, variablesKey);
    for (const key of inside) holder = memberOf(holder, key);
    const held = memberOf(holder, last);
    // Of two files in one place one would be lost.
    if (held instanceof UploadedFile) throw badPath(path);
    const mayBeAbsent = inside.length === 0 && isObject(holder);
    if (held === undefined && !(mayBeAbsent && hasVariable(operation, last))) throw badPath(path);
    // The holder is an object or an array, and belongs to this request alone.
    (holder as Record<string, unknown>)[last] = file;
  };
}

/** The variables in the text of an operation: clients may leave out those that are files. */
function variablesIn(query: unknown): ReadonlySet<string> {
  const found = typeof query === 'string' ? query.matchAll(/\$(\w+)/g) : [];
  const names = new Set(Array.from(found, ([, name = '']) => name));
  // As in JSON (R10): it would not be a member.
  names.delete('__proto__');
  return names;
}

/** Returns an own member of an object, or an item of an array; undefined if there is none. */
function memberOf(holder: unknown, key: string): unknown {
  if (Array.isArray(holder)) {
    return /^(?:0|[1-9][0-9]{0,8})$/.test(key) ? (holder[Number(key)] as unknown) : undefined;
  }
  return isObject(holder) && Object.hasOwn(holder, key) ? holder[key] : undefined;
}

function badPath(path: string): AppError {
  return invalidRequest(`The map's path ${path} does not lead to a free place under variables.`);
}
