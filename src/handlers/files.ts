/** Files over REST (Spec §4.4, R18, R19). */

import { Readable } from 'node:stream';
import type { ByteSource } from '../byte-source.ts';
import { mediaTypeOf } from '../domain/file-names.ts';
import { receiveFile, toLogFacts, type ReceivedFile } from '../domain/files.ts';
import { type AppError, invalidBody } from '../errors.ts';
import { emptyReply, type Handler, type HttpReply, type HttpRequest } from '../http/message.ts';
import type { MultipartRules, PartHead } from '../http/multipart/read.ts';
import { createBoundary, writeMultipart, type OutgoingPart } from '../http/multipart/write.ts';
import type { Log } from '../log.ts';
import { andThen } from '../maybe-promise.ts';
import type { Listing, Snapshot, Upload, Uploads } from '../store/uploads.ts';

export interface FileHandlers {
  readonly uploadSimple: Handler;
  readonly uploadList: Handler;
  readonly download: Handler;
}

export interface FileHandlersOptions {
  readonly uploads: Uploads;
  readonly config: MultipartRules & { readonly bodyBytesMax: number };
  readonly log: Log;
  /** For files that come without a name (Spec §4.4 rule 2). */
  readonly createUuid: () => string;
}

/** Takes one part, or throws; undefined where the part is no file. */
type Receive = (
  upload: Upload,
  part: PartHead,
  content: ByteSource,
) => Promise<ReceivedFile | undefined>;

export function createFileHandlers(options: FileHandlersOptions): FileHandlers {
  const { uploads, config, createUuid } = options;

  const receive: Receive = (upload, part, content) =>
    receiveFile(upload, { ...part, content }, createUuid);

  const receiveSimple: Receive = async (upload, part, content) => {
    if (part.name === 'part') return receive(upload, part, content);
    // Choice: a part that the route does not know is refused, since it would be lost (R18).
    if (part.name !== 'name') throw unknownPart();
    // Its text is optional and not stored (R18).
    const { readPart } = await loadReader();
    await readPart(content, config.bodyBytesMax);
    return undefined;
  };

  return {
    async uploadSimple(request) {
      await receiveAll(request, options, {
        receive: receiveSimple,
        check(files) {
          if (files.length === 0) throw missingPart();
        },
      });
      return emptyReply(200);
    },
    async uploadList(request) {
      await receiveAll(request, options, { receive, check: () => undefined });
      return emptyReply(200);
    },
    download: () => andThen(uploads.list(), toReply),
  };
}

function toReply(listing: Listing): HttpReply {
  const boundary = createBoundary();
  // Opened with the first read: a body that is never read holds no files open.
  const body = Readable.from(toBody(listing, boundary), {
    objectMode: false,
    highWaterMark: downloadBytesMax / 4,
  });
  const headers = ['Content-Type', `multipart/form-data; boundary=${boundary}`];
  return { status: 200, headers, body, streamBytesMax: downloadBytesMax };
}

/** What a download holds in memory at a time. */
const downloadBytesMax = 256 * 1024;

/** Loaded with the first upload, to keep the start short. */
const loadReader = () => import('../http/multipart/read.ts');

interface Rules {
  readonly receive: Receive;
  /** Throws where the files of a whole request are not what the route needs. */
  readonly check: (files: readonly ReceivedFile[]) => void;
}

/** All files of a request, or none of them (R18). */
async function receiveAll(
  request: HttpRequest,
  { uploads, config, log }: FileHandlersOptions,
  { receive, check }: Rules,
): Promise<void> {
  const upload = uploads.begin();
  try {
    const received: ReceivedFile[] = [];
    const { readMultipart } = await loadReader();
    await readMultipart(request, config, async (part, content) => {
      const file = await receive(upload, part, content);
      if (file !== undefined) received.push(file);
    });
    check(received);
    await upload.commit(received.map((file) => file.written));
    for (const file of received) {
      log('info', 'file uploaded', { requestId: request.id, ...toLogFacts(file) });
    }
  } finally {
    await upload.close();
  }
}

function missingPart(): AppError {
  return invalidBody([{ pointer: '/part', message: 'is required' }]);
}

function unknownPart(): AppError {
  return invalidBody([{ pointer: '', message: 'may hold the parts "name" and "part" only' }]);
}

/** A snapshot of the moment in which the answer begins. A file that is gone ends the stream. */
async function* toBody(
  listing: Listing,
  boundary: string,
): AsyncGenerator<Buffer, void, undefined> {
  const snapshot = listing.open();
  try {
    yield* writeMultipart(boundary, toParts(snapshot));
  } finally {
    await snapshot.release();
  }
}

/** Spec §4.4 rule 3: one fixed part, with the names and the text of R18, then the stored files. */
function* toParts(snapshot: Snapshot): Generator<OutgoingPart, void, undefined> {
  yield {
    name: 'abd',
    fileName: 'abc.text',
    contentType: 'text/plain',
    content: [Buffer.from('this is a text content')],
  };
  for (const file of snapshot.files) {
    yield {
      name: file.storedName,
      fileName: file.storedName,
      contentType: mediaTypeOf(file.storedName),
      content: snapshot.read(file),
    };
  }
}
