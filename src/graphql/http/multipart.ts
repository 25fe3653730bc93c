/**
 * GraphQL multipart requests (R26): `operations` as JSON, files as parts, and a `map` that assigns
 * the files to variables, in any order.
 */

import type { Config } from '../../config.ts';
import { type ReceivedFile, receiveFile } from '../../domain/files.ts';
import { parseJson } from '../../http/json.ts';
import type { HttpRequest } from '../../http/message.ts';
import { type MultipartRules, readMultipart, readPart } from '../../http/multipart/read.ts';
import type { Upload, Uploads } from '../../store/files/uploads.ts';
import { UploadedFile } from '../schema/uploaded-file.ts';
import { decodeBody, invalidRequest, type Requests } from './params.ts';
import { placeFiles } from './place-files.ts';

export interface MultipartDeps {
  readonly uploads: Pick<Uploads, 'begin'>;
  /** Names files that come without a name (Spec §4.4 rule 2). */
  readonly createUuid: () => string;
  readonly config: MultipartRules & Pick<Config, 'bodyBytesMax'>;
}

/**
 * Receives all parts, then calls `run` with the operations, in which each file is an UploadedFile.
 * Files that no operation stores are removed when it ends. Throws AppErrors for an invalid
 * multipart request.
 */
export async function withOperations<T>(
  request: HttpRequest,
  deps: MultipartDeps,
  run: (requests: Requests) => Promise<T>,
): Promise<T> {
  const upload = deps.uploads.begin();
  let isOpen = true;
  try {
    const parts = await receiveParts(request, upload, deps);
    const files = new Map<string, UploadedFile>();
    for (const [name, { facts, written }] of parts.files) {
      // A file can be used in several places: it is stored once.
      let stored: Promise<void> | undefined;
      const store = (): Promise<void> => {
        if (!isOpen) throw new Error('an operation stored a file after the end of its request');
        return (stored ??= upload.commit([written]));
      };
      files.set(name, new UploadedFile(facts, store));
    }
    return await run(decodeParts(parts, files));
  } finally {
    isOpen = false;
    await upload.close();
  }
}

interface Parts {
  operations: Buffer | undefined;
  map: Buffer | undefined;
  /** The files by part name. */
  readonly files: Map<string, ReceivedFile>;
}

async function receiveParts(
  request: HttpRequest,
  upload: Upload,
  { config, createUuid }: MultipartDeps,
): Promise<Parts> {
  const parts: Parts = { operations: undefined, map: undefined, files: new Map() };
  await readMultipart(request, config, async (head, content) => {
    const { name } = head;
    if (name === 'operations' || name === 'map') {
      if (parts[name] !== undefined) throw invalidRequest(`The part ${name} was sent twice.`);
      parts[name] = await readPart(content, config.bodyBytesMax, request.room);
      return;
    }
    if (parts.files.has(name)) throw invalidRequest(`The part ${name} was sent twice.`);
    parts.files.set(name, await receiveFile(upload, { ...head, content }, createUuid));
  });
  return parts;
}

/** Nothing is awaited while the parsed parts are in memory. */
function decodeParts(
  { operations, map }: Parts,
  files: ReadonlyMap<string, UploadedFile>,
): Requests {
  if (operations === undefined) throw invalidRequest('The part operations is missing.');
  const body = parseJson(operations);
  placeFiles(body, files, map === undefined ? {} : parseJson(map));
  return decodeBody(body);
}
