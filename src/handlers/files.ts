/** Files over REST (Spec §4.4, R18, R19, R45). */

import { Readable } from 'node:stream';
import {
  idsFrom,
  mediaTypeOf,
  type ReceivedFile,
  receiveFile,
  shownTypeOf,
  toDisposition,
} from '../domain/files.ts';
import { AppError, invalidBody } from '../errors.ts';
import { toConditional } from '../http/etag.ts';
import { markReplayed, readIdempotencyKey } from '../http/idempotency.ts';
import {
  emptyResponse,
  type Handler,
  type HttpResponse,
  type HttpRequest,
  jsonTextResponse,
} from '../http/message.ts';
import type * as MultipartModule from '../http/multipart/read.ts';
import { createBoundary, writeMultipart } from '../http/multipart/write.ts';
import { prefersRepresentation, withPreferenceApplied } from '../http/prefer.ts';
import { toByteRange } from '../http/range.ts';
import { andThen } from '../maybe-promise.ts';
import type { StoredFile } from '../store/file-index.ts';
import type { Snapshot } from '../store/files/uploads.ts';
import { changeCurrent } from './changes.ts';
import type { HandlerDeps } from './deps.ts';
import { tagOf, toFileJson } from './file-list.ts';
import { findOnce } from './once.ts';

/** Memory of one download, in bytes. */
const downloadBytesMax = 256 * 1024;
/** Memory of each file in the list of a download: the names at their longest, and the size. */
const listedFileBytes = 1_024;

/**
 * What a browser runs or loads for a file that it shows (R45): no script, form or plugin, nothing
 * of this or another host, and in an origin of its own. An SVG keeps its styles and the pictures
 * inside it. Pages of any origin may embed a file: no cookie protects files.
 */
const shownHeaders: readonly string[] = [
  [
    'Content-Security-Policy',
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
  ],
  ['Cross-Origin-Resource-Policy', 'cross-origin'],
].flat();

type FileDeps = Pick<HandlerDeps, 'uploads' | 'viewerOf' | 'config' | 'log' | 'createUuid'>;

export function createFileHandlers(deps: FileDeps) {
  const { uploads, viewerOf } = deps;
  const receive = createReceive(deps);
  const respond = async (request: HttpRequest, present: Present): Promise<HttpResponse> => {
    const snapshot = await uploads.open(request.params['name'] ?? '');
    try {
      return await toFileResponse(request, snapshot, present);
    } finally {
      // What is open can be read after it is removed.
      void snapshot.release();
    }
  };

  const get = async ({ params }: HttpRequest): Promise<StoredFile> =>
    getOne(await uploads.list(params['name'] ?? ''));

  return {
    uploadSimple: (request) => receive(request, true),
    uploadList: (request) => receive(request, false),
    download: ({ method }) => {
      const boundary = createBoundary();
      const headers = ['Content-Type', `multipart/form-data; boundary=${boundary}`];
      if (method === 'HEAD') return { status: 200, headers, body: Readable.from([]) };
      return andThen(uploads.open(), (snapshot) => {
        const body = toStream(writeMultipart(boundary, toParts(snapshot)));
        // A stream closes also if it is never read.
        body.once('close', () => void snapshot.release());
        const streamBytesMax = downloadBytesMax + snapshot.files.length * listedFileBytes;
        return { status: 200, headers, body, streamBytesMax };
      });
    },
    find: (request) => respond(request, toDownload),
    show: (request) => respond(request, toShown),
    remove: (request) =>
      changeCurrent(request, { get, tagOf, viewerOf, store: uploads }, (file, { once }) =>
        uploads.remove(file, once),
      ),
  } satisfies Readonly<Record<string, Handler>>;
}

/** The files of a request, and the id of the first one without a name. */
interface Received {
  readonly received: readonly ReceivedFile[];
  readonly firstId: string;
}

/** Stores all files of a request, or none (R18): those of `/simple`, or those of `/list`. */
function createReceive({ uploads, viewerOf, config, log, createUuid }: FileDeps) {
  // Loaded with the first upload, so that the server starts faster.
  let multipart: typeof MultipartModule | undefined;

  /**
   * Stores the files once under a key. A repetition describes what is stored now (R40), also of
   * files without a name: the store tells it the `firstId` of the first time.
   */
  const commit = async (
    request: HttpRequest,
    upload: ReturnType<typeof uploads.begin>,
    { received, firstId }: Received,
  ): Promise<HttpResponse> => {
    const onlyNew = request.header('if-none-match')?.trim() === '*';
    const files = received.map(({ written }) => written);
    const names = received.map(({ facts }) => [facts.name, facts.fileName]);
    const once = await findOnce(request, viewerOf, names);
    const repeated = await upload.commit(files, {
      onlyNew,
      once: once && { ...once, id: firstId },
    });
    if (repeated !== undefined) {
      const nextId = idsFrom(repeated.id);
      const present = received.map(async ({ facts, written: { storedName } }) =>
        uploads.list(facts.fileName || nextId() + storedName.slice(firstId.length)),
      );
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
      const firstId = createUuid();
      const nextId = idsFrom(firstId);
      multipart ??= await import('../http/multipart/read.ts');
      const { readMultipart, readPart } = multipart;
      await readMultipart(request, config, async (part, content) => {
        // Text parts are optional and not stored (R18).
        if (isSimple && !isFile(part.name)) {
          await readPart(content, config.bodyBytesMax, request.reservation);
        } else received.push(await receiveFile(upload, { ...part, content }, nextId));
      });
      if (isSimple && received.length === 0) {
        throw invalidBody([{ pointer: '/part', message: 'is required' }]);
      }
      return await commit(request, upload, { received, firstId });
    } finally {
      await upload.close();
    }
  };
}

/**
 * True for the file of `/simple`, false for its text. Choice: a part with another name is refused,
 * because it would be lost (R18).
 */
function isFile(partName: string): boolean {
  if (partName === 'part' || partName === 'name') return partName === 'part';
  throw invalidBody([{ pointer: '', message: 'may hold the parts "name" and "part" only' }]);
}

/** The response lists what was stored if the client prefers that (R45). */
function toStoredResponse(request: HttpRequest, files: readonly StoredFile[]): HttpResponse {
  if (!prefersRepresentation(request)) return emptyResponse(200);
  // Of two files with one name the later one is stored.
  const stored = new Map(files.map((file) => [file.storedName, file])).values();
  const body = `[${Array.from(stored, toFileJson).join()}]`;
  return withPreferenceApplied(jsonTextResponse(200, body));
}

function getOne([file]: readonly StoredFile[]): StoredFile {
  if (file === undefined) throw new AppError('not_found', 'There is no file of this name.');
  return file;
}

function toStream(content: AsyncIterable<Buffer>): Readable {
  return Readable.from(content, { objectMode: false, highWaterMark: downloadBytesMax / 4 });
}

/** Headers of a response with a file: those that a 304 has too, and those of its content. */
type Present = (storedName: string) => Readonly<Record<'shared' | 'ofContent', readonly string[]>>;

const toContentHeaders = (type: string, disposition: string): readonly string[] => [
  'Content-Type',
  type,
  'Content-Disposition',
  disposition,
];

const toDownload: Present = (name) => {
  const ofContent = toContentHeaders(mediaTypeOf(name), toDisposition(name, 'attachment'));
  return { shared: [], ofContent };
};

const toShown: Present = (name) => {
  const type = shownTypeOf(name);
  const disposition = toDisposition(name, type === undefined ? 'attachment' : 'inline');
  const full = type === 'text/plain' ? `${type}; charset=utf-8` : type;
  const ofContent = toContentHeaders(full ?? 'application/octet-stream', disposition);
  return { shared: shownHeaders, ofContent };
};

/** Responds with a file or a range of it (RFC 9110 §14), or 304 if the client has it (§13). */
async function toFileResponse(
  request: HttpRequest,
  snapshot: Snapshot,
  present: Present,
): Promise<HttpResponse> {
  const file = getOne(snapshot.files);
  const etag = tagOf(file);
  const { shared, ofContent } = present(file.storedName);
  const headers = ['ETag', etag, 'Cache-Control', 'no-cache', 'Accept-Ranges', 'bytes', ...shared];
  const conditional = toConditional({ ...emptyResponse(200, headers), etag }, request);
  if (conditional.status === 304) return emptyResponse(304, headers);
  const isGet = request.method === 'GET';
  const isAsked = isGet && (request.header('if-range') ?? etag) === etag;
  const range = isAsked ? toByteRange(request.header('range'), file.size) : undefined;
  const { start, end } = range ?? { start: 0, end: file.size };
  headers.push(...ofContent);
  if (range) headers.push('Content-Range', `bytes ${start}-${end - 1}/${file.size}`);
  // Opened before the head is sent. A response to HEAD has the headers of a stream.
  const content = isGet ? await snapshot.read(file, { start, end }) : Readable.from([]);
  if (!content) throw new AppError('internal_error', 'The stored file is missing on the disk.');
  return {
    status: range ? 206 : 200,
    headers,
    body: toStream(content),
    streamBytes: end - start,
    streamBytesMax: Math.min(downloadBytesMax, end - start),
  };
}

/**
 * Spec §4.4 rule 3: one fixed part with the values of R18, then the stored files. Choice: a file
 * that is missing on the disk is left out.
 */
async function* toParts(snapshot: Snapshot) {
  yield {
    name: 'abd',
    fileName: 'abc.text',
    contentType: 'text/plain',
    content: [Buffer.from('this is a text content')],
  };
  for (const file of snapshot.files) {
    const content = await snapshot.read(file);
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
