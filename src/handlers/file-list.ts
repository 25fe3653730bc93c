/** `GET /files` (R45): what is stored, as JSON, in pages as other lists (R14a). */

import { shownTypeOf } from '../domain/files.ts';
import type { Handler, HttpResponse } from '../http/message.ts';
import { invalidParameter, toListQuery, toTarget } from '../records/list-query.ts';
import type { StoredFile } from '../store/file-index.ts';
import type { HandlerDeps } from './deps.ts';

/** The form of `after` in a link: the place of a file, which stays valid if the file is removed. */
const placePattern = /^\/(\d{1,15})$/;

export function createFileList({ uploads, toListResponse, run }: HandlerDeps): Handler {
  /** The place in the `after` of a link, or of a file by its name, which has no slash (R18). */
  const toPlace = async (after: string): Promise<number> => {
    const place = placePattern.exec(after)?.[1];
    if (place !== undefined) return Number(place);
    const [file] = await uploads.list(after.normalize('NFC'));
    if (file === undefined) throw invalidParameter('after', 'the name of a stored file');
    return file.place;
  };
  return async ({ query }): Promise<HttpResponse> => {
    const { limit, after } = toListQuery(query, { toId: (name) => name });
    const start = after === undefined ? 0 : await toPlace(String(after));
    const page = await run(() => uploads.readPage(start, limit));
    const last = limit && page.next ? page.records.at(-1) : undefined;
    const first = last === undefined ? page : { ...page, next: undefined };
    const response = await toListResponse({ first, toJson: toFileJson, version: undefined });
    if (last === undefined) return response;
    const next = toTarget('/files', { limit, after: `/${last.place}` });
    return { ...response, headers: [...response.headers, 'Link', `<${next}>; rel="next"`] };
  };
}

/** `type` and `etag` are those of `GET /files/{name}`; the type without parameters. */
export function toFileJson(file: StoredFile): string {
  const { storedName: name, size } = file;
  const type = shownTypeOf(name) ?? 'application/octet-stream';
  return JSON.stringify({ name, size, type, etag: tagOf(file) });
}

/** When it was written, in whole seconds: the name on disk is a UUIDv7 (RFC 9562 §5.7). */
export function modifiedAtOf({ temporaryName }: StoredFile): number {
  const milliseconds = Number.parseInt(temporaryName.replace('-', '').slice(0, 12), 16);
  return Math.floor(milliseconds / 1000) * 1000;
}

/** A file on disk never changes, so that its name can be its tag. */
export function tagOf({ temporaryName }: StoredFile): string {
  return `"${temporaryName}"`;
}
