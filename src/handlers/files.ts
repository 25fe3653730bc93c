/** Files over REST (Spec §4.4, R18, R19, R45). */

import { Readable } from 'node:stream';
import {
  mediaTypeOf,
  type ReceivedFile,
  receiveFile,
  shownTypeOf,
  toDisposition,
} from '../domain/files.ts';
import { checkOwner, type Reader } from '../domain/readers.ts';
import { AppError, invalidBody } from '../errors.ts';
import { checkConditions, isUnmodifiedSince, toConditional } from '../http/etag.ts';
import { markReplayed, readIdempotencyKey } from '../http/idempotency.ts';
import {
  emptyResponse,
  type Handler,
  type HttpResponse,
  type HttpRequest,
  jsonTextResponse,
} from '../http/message.ts';
import { readMultipart, readPart } from '../http/multipart/read.ts';
import { createBoundary, writeMultipart } from '../http/multipart/write.ts';
import { prefersRepresentation, withPreferenceApplied } from '../http/prefer.ts';
import { toByteRange } from '../http/range.ts';
import type { ListedFile, StoredFile } from '../store/file-index.ts';
import type { Uploads } from '../store/files/uploads.ts';
import { changeRecord } from './changes.ts';
import type { HandlerDeps } from './deps.ts';
import { modifiedAtOf, tagOf, toFileJson } from './file-list.ts';
import { findOnce } from './once.ts';

/** Memory of one download, in bytes. */
const downloadBytesMax = 256 * 1024;
/** Memory of each file in the list of a download: the names at their longest, and the size. */
const listedFileBytes = 1_024;

/**
 * What a browser runs or loads for a file that it shows (R45): no script, form or plugin, nothing
 * of this or another host, and in an origin of its own. An SVG keeps its styles and the pictures
 * inside it. The page that a browser makes for audio or video loads it from its address, for which
 * it has to be of this origin; it runs no script either.
 */
const shownPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";
const mediaPolicy =
  "sandbox allow-same-origin; default-src 'none'; media-src 'self'; style-src 'unsafe-inline'";

type FileDeps = Pick<
  HandlerDeps,
  'uploads' | 'viewerOf' | 'readerOf' | 'config' | 'log' | 'createUuid'
>;

export function createFileHandlers(deps: FileDeps) {
  const { uploads, viewerOf, readerOf } = deps;
  const receive = createReceive(deps);
  const get = async (request: HttpRequest): Promise<ListedFile> =>
    getOne(await uploads.list(nameOf(request)));
  const respond = async (request: HttpRequest, headers: HeadersOf): Promise<HttpResponse> => {
    const end = uploads.keepReplaced();
    try {
      const file = await get(request);
      return await toFileResponse(request, file, { ...headers(file.storedName), uploads });
    } finally {
      end();
    }
  };

  return {
    uploadSimple: (request) => receive(request, true),
    uploadList: (request) => receive(request, false),
    download: async ({ method }) => {
      const boundary = createBoundary();
      const headers = ['Content-Type', `multipart/form-data; boundary=${boundary}`];
      if (method === 'HEAD') return { status: 200, headers, body: Readable.from([]) };
      const end = uploads.keepReplaced();
      try {
        const files = await uploads.list();
        const body = toStream(writeMultipart(boundary, toParts(uploads, files))).once('close', end);
        const streamBytesMax = downloadBytesMax + files.length * listedFileBytes;
        return { status: 200, headers, body, streamBytesMax };
      } catch (error) {
        end();
        throw error;
      }
    },
    find: (request) => respond(request, toDownload),
    show: (request) => respond(request, toShown),
    remove: async (request) => {
      const reader = await readerOf(request);
      const getOwn = async () => {
        const file = await get(request);
        checkOwner(reader, file.owner);
        return file;
      };
      const current = { get: getOwn, tagOf, dateOf: modifiedAtOf, viewerOf, store: uploads };
      return changeRecord(request, current, (file, { once }) => uploads.remove(file, once));
    },
  } satisfies Readonly<Record<string, Handler>>;
}

/** Stores all files of a request, or none (R18): those of `/simple`, or those of `/list`. */
function createReceive({ uploads, viewerOf, readerOf, config, log, createUuid }: FileDeps) {
  /**
   * Stores the files once under a key. A repetition describes what is stored now (R40), of the
   * files that have a name.
   */
  const commit = async (
    request: HttpRequest,
    upload: ReturnType<typeof uploads.begin>,
    received: readonly ReceivedFile[],
  ): Promise<HttpResponse> => {
    const reader = await readerOf(request);
    const owner = (await viewerOf(request))?.id;
    const files = received.map(({ written }) => written);
    request.changed = files.map(({ storedName }) => storedName);
    const names = received.map(({ facts }) => [facts.name, facts.fileName]);
    const once = await findOnce(request, viewerOf, names);
    const check = (replaced: readonly ListedFile[]): void => {
      const before = new Map(replaced.map((file) => [file.storedName, file]));
      for (const { storedName } of files) checkReplaced(request, before.get(storedName), reader);
    };
    const repeated = await upload.commit(files, { owner, check, once });
    if (repeated !== undefined) {
      const named = received.filter(({ facts }) => facts.fileName !== '');
      const present = named.map(async ({ facts }) => uploads.list(facts.fileName));
      return markReplayed(toStoredResponse(request, (await Promise.all(present)).flat()));
    }
    for (const { facts } of received) {
      log('info', 'file uploaded', { requestId: request.id, ...facts });
    }
    return toStoredResponse(request, files);
  };

  return async (request: HttpRequest, isSimple: boolean): Promise<HttpResponse> => {
    readIdempotencyKey(request); // one that is not valid is refused before the files come
    const upload = uploads.begin();
    try {
      const received: ReceivedFile[] = [];
      await readMultipart(request, config, async (part, content) => {
        // A form has more than its file: text beside is ignored (R18).
        if (isSimple && part.name !== 'part' && part.fileName === undefined) {
          await readPart(content, config.bodyBytesMax, request.reservation);
          return;
        }
        const file = await receiveFile(upload, { ...part, content }, createUuid);
        if (file === undefined) return;
        if (isSimple && (part.name !== 'part' || received.length > 0)) {
          throw invalidBody([{ pointer: '', message: 'may hold one file only, as "part"' }]);
        }
        received.push(file);
      });
      if (isSimple && received.length === 0) {
        throw invalidBody([{ pointer: '/part', message: 'is required' }]);
      }
      return await commit(request, upload, received);
    } finally {
      await upload.close();
    }
  };
}

/** Whether a file may be replaced, or be new (R36, RFC 9110 §13.1). */
function checkReplaced(
  request: HttpRequest,
  file: ListedFile | undefined,
  reader: Reader | undefined,
): void {
  if (file === undefined) {
    if (request.header('if-match') === undefined) return;
    throw new AppError('precondition_failed', 'There is no file of this name.');
  }
  checkOwner(reader, file.owner);
  checkConditions(request, () => tagOf(file), modifiedAtOf(file));
}

/** The response lists what was stored if the client prefers that (R45). */
function toStoredResponse(request: HttpRequest, files: readonly StoredFile[]): HttpResponse {
  if (!prefersRepresentation(request)) return emptyResponse(200);
  const body = `[${files.map(toFileJson).join()}]`;
  return withPreferenceApplied(jsonTextResponse(200, body));
}

/** Stored names are in NFC (R18). */
function nameOf({ params }: HttpRequest): string {
  return (params['name'] ?? '').normalize('NFC');
}

function getOne([file]: readonly ListedFile[]): ListedFile {
  if (file === undefined) throw new AppError('not_found', 'There is no file of this name.');
  return file;
}

function toStream(content: AsyncIterable<Buffer>): Readable {
  return Readable.from(content, { objectMode: false, highWaterMark: downloadBytesMax / 4 });
}

/** Headers of a response with a file: those that a 304 has too, and those of its content. */
type HeadersOf = (
  storedName: string,
) => Readonly<Record<'shared' | 'ofContent', readonly string[]>>;

const toDownload: HeadersOf = (name) => {
  const disposition = toDisposition(name, 'attachment');
  const ofContent = ['Content-Type', mediaTypeOf(name), 'Content-Disposition', disposition];
  return { shared: [], ofContent };
};

/** Pages of any origin may embed a file: no cookie protects files. */
const toShown: HeadersOf = (name) => {
  const type = shownTypeOf(name);
  const isMedia = /^(?:audio|video)\//.test(type ?? '');
  const policy = ['Content-Security-Policy', isMedia ? mediaPolicy : shownPolicy];
  const shared = [...policy, 'Cross-Origin-Resource-Policy', 'cross-origin'];
  const full = type === 'text/plain' ? `${type}; charset=utf-8` : type;
  const disposition = toDisposition(name, type === undefined ? 'attachment' : 'inline');
  const ofContent = ['Content-Type', full ?? 'application/octet-stream'];
  return { shared, ofContent: [...ofContent, 'Content-Disposition', disposition] };
};

interface Found extends ReturnType<HeadersOf> {
  readonly uploads: Pick<Uploads, 'read'>;
}

/** Responds with a file or a range of it (RFC 9110 §14), or 304 if the client has it (§13). */
async function toFileResponse(
  request: HttpRequest,
  file: StoredFile,
  { shared, ofContent, uploads }: Found,
): Promise<HttpResponse> {
  const etag = tagOf(file);
  const modifiedAt = modifiedAtOf(file);
  const lastModified = new Date(modifiedAt).toUTCString();
  const headers = [
    'ETag',
    etag,
    'Last-Modified',
    lastModified,
    'Accept-Ranges',
    'bytes',
    ...shared,
  ];
  const conditional = toConditional({ ...emptyResponse(200), etag }, request);
  if (conditional.status === 304 || isUnmodifiedSince(request, modifiedAt)) {
    return emptyResponse(304, [...headers, 'Cache-Control', 'no-cache']);
  }
  const isGet = request.method === 'GET';
  const isAsked = isGet && [etag, lastModified].includes(request.header('if-range') ?? etag);
  const range = isAsked ? toByteRange(request.header('range'), file.size) : undefined;
  const { start, end } = range ?? { start: 0, end: file.size };
  // No proxy makes something else of a part, such as a compressed one (RFC 9110 §7.7).
  headers.push('Cache-Control', range ? 'no-cache, no-transform' : 'no-cache', ...ofContent);
  if (range) headers.push('Content-Range', `bytes ${start}-${end - 1}/${file.size}`);
  // Opened before the head is sent. A response to HEAD has the headers of a stream.
  const content = isGet ? await uploads.read(file, { start, end }) : Readable.from([]);
  if (!content) throw new AppError('internal_error', 'The stored file is missing on the disk.');
  return {
    status: range ? 206 : 200,
    headers,
    etag,
    body: toStream(content),
    streamBytes: end - start,
    streamBytesMax: Math.min(downloadBytesMax, end - start),
  };
}

/**
 * Spec §4.4 rule 3: one fixed part with the values of R18, then the stored files. Choice: a file
 * that is missing on the disk is left out.
 */
async function* toParts(uploads: Pick<Uploads, 'read'>, files: readonly StoredFile[]) {
  yield {
    name: 'abd',
    fileName: 'abc.text',
    contentType: 'text/plain',
    content: [Buffer.from('this is a text content')],
  };
  for (const file of files) {
    const content = await uploads.read(file);
    if (content === undefined) continue;
    const { storedName: name } = file;
    try {
      yield { name, fileName: name, contentType: mediaTypeOf(name), content };
    } finally {
      // The reader may stop before it reads the content.
      await content.return();
    }
  }
}
