/**
 * GraphQL multipart requests (R26): `operations` as JSON and files as parts, in any order. Files
 * are assigned to variables by `map` (version 2 of that specification) or, without `map`, by a
 * variable of type Upload whose value is the name of the part (draft of version 3).
 */

import type { Config } from '../../config.ts';
import { type ReceivedFile, receiveFile } from '../../domain/files.ts';
import { parseJson } from '../../http/json.ts';
import type { HttpResponse, HttpRequest } from '../../http/message.ts';
import { type MultipartRules, readMultipart, readPart } from '../../http/multipart/read.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { Upload, Uploads } from '../../store/uploads.ts';
import type { Engine } from '../engine.ts';
import { UploadedFile } from '../schema/uploaded-file.ts';
import { invalidRequest } from './params.ts';
import { placeByMap, placeByName } from './multipart-places.ts';

export interface MultipartDeps {
  readonly engine: Engine;
  readonly uploads: Uploads;
  /** Names files that come without a name (Spec §4.4 rule 2). */
  readonly createUuid: () => string;
  readonly config: MultipartRules & Pick<Config, 'bodyBytesMax'>;
}

/**
 * Receives all parts, then calls `run` with the operations, in which each file is an UploadedFile.
 * Files that `run` does not keep are removed when it ends. Throws AppErrors for an invalid
 * multipart request.
 */
export async function runMultipart(
  request: HttpRequest,
  deps: MultipartDeps,
  run: (body: unknown) => MaybePromise<HttpResponse>,
): Promise<HttpResponse> {
  const upload = deps.uploads.begin();
  let isOpen = true;
  try {
    const parts = await receiveParts(request, upload, deps);
    if (parts.operations === undefined) throw invalidRequest('The part operations is missing.');
    const files = new Map<string, UploadedFile>();
    for (const [name, file] of parts.files) {
      // A file can be used in several places: it is kept once.
      let kept: Promise<void> | undefined;
      const keep = (): Promise<void> => {
        if (!isOpen) throw new Error('a file was asked for after its request was over');
        return (kept ??= upload.commit([file.written]));
      };
      files.set(name, new UploadedFile(file.facts, keep));
    }
    const body = parseJson(parts.operations);
    if (parts.map === undefined) placeByName(body, files, deps.engine);
    else placeByMap(body, files, parseJson(parts.map));
    return await run(body);
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
      parts[name] = await readPart(content, config.bodyBytesMax);
      return;
    }
    if (parts.files.has(name)) throw invalidRequest(`The part ${name} was sent twice.`);
    parts.files.set(name, await receiveFile(upload, { ...head, content }, createUuid));
  });
  return parts;
}
