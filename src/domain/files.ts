/**
 * Files that clients send, for REST and GraphQL alike (R19): their names and media types (Spec §4.4
 * rules 1, 2 and 4; R18), and how they are stored.
 */

import { AppError } from '../errors.ts';
import type { OwnedBuffers } from '../owned-buffers.ts';
import type { Upload } from '../store/files/uploads.ts';

/** A part of a multipart body that holds a file. */
interface FilePart {
  readonly name: string;
  readonly fileName: string | undefined;
  /** `type/subtype` in lower case. */
  readonly contentType: string;
  readonly charset: string | undefined;
  readonly content: AsyncIterable<OwnedBuffers>;
}

export type ReceivedFile = NonNullable<Awaited<ReturnType<typeof receiveFile>>>;

/**
 * Writes the content of a part. The file becomes visible with `upload.commit([received.written])`.
 * One that comes without a name gets an id and an extension (Spec §4.4 rule 2). Undefined if it is
 * no file: browsers send an empty one with an empty name where nothing was chosen (R18). Throws
 * `invalid_multipart` for an invalid name, and the errors of `Upload.write`.
 *
 * `facts`: the six values of Spec §4.1 rule 4, for the log (R19): part name; client's file name
 * (R18), empty if it has none; file name in the store's folder; media type; charset, `utf-8` if the
 * part names none (RFC 7578 §4.5); size in bytes.
 */
export async function receiveFile(upload: Upload, part: FilePart, createUuid: () => string) {
  const { name, contentType, charset = 'utf-8', content } = part;
  const fileName = toFileName(part.fileName) ?? '';
  const extension = extensionOfType.get(contentType) ?? 'bin';
  const written = await upload.write(fileName || `${createUuid()}.${extension}`, content);
  const { temporaryName, size } = written;
  if (part.fileName === '' && size === 0) return undefined;
  return { written, facts: { name, fileName, temporaryName, contentType, charset, size } };
}

/** The limit of common file systems: a longer name could not be saved after a download. */
const fileNameBytesMax = 255;

/** Unicode's category Cc: C0, DEL and C1. They must not reach a header or a terminal. */
const controlCharacter = /\p{Cc}/u;

const extensionOfType: ReadonlyMap<string, string> = new Map([
  ['text/plain', 'txt'],
  ['application/svg+xml', 'svg'],
]);

const typeOfExtension: ReadonlyMap<string, string> = new Map(
  [...extensionOfType].map(([type, extension]) => [extension, type]),
);

/**
 * The part of the client's file name after the last `/` or `\`. Undefined if that is empty, `.` or
 * `..`. Throws `invalid_multipart` for a control character, or for more than 255 bytes of UTF-8
 * (R18).
 */
export function toFileName(given: string | undefined): string | undefined {
  if (given === undefined) return undefined;
  const name = given.slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1);
  if (name === '' || name === '.' || name === '..') return undefined;
  if (controlCharacter.test(name)) {
    throw new AppError('invalid_multipart', 'A file name holds a control character.');
  }
  const bytes = Buffer.from(name);
  if (bytes.length > fileNameBytesMax) {
    const message = `A file name is longer than ${fileNameBytesMax} bytes of UTF-8.`;
    throw new AppError('invalid_multipart', message);
  }
  // A copy: V8 keeps the whole header block alive for a slice of it, and this name is stored.
  return bytes.toString();
}

/** The media type with which a stored file is served (Spec §4.4 rule 4). */
export function mediaTypeOf(storedName: string): string {
  return typeOfExtension.get(extensionOf(storedName)) ?? 'application/octet-stream';
}

/**
 * What browsers may show, because it runs nothing in a sandbox (R45). HTML and XML are not in it.
 */
const shownTypes: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['jfif', 'image/jpeg'],
  ['jpe', 'image/jpeg'],
  ['pjpeg', 'image/jpeg'],
  ['pjp', 'image/jpeg'],
  ['jxl', 'image/jxl'],
  ['tif', 'image/tiff'],
  ['tiff', 'image/tiff'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['avif', 'image/avif'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['apng', 'image/apng'],
  ['ico', 'image/x-icon'],
  ['bmp', 'image/bmp'],
  ['svg', 'image/svg+xml'],
  ['mp3', 'audio/mpeg'],
  ['ogg', 'audio/ogg'],
  ['oga', 'audio/ogg'],
  ['opus', 'audio/ogg'],
  ['aac', 'audio/aac'],
  ['weba', 'audio/webm'],
  ['wav', 'audio/wav'],
  ['flac', 'audio/flac'],
  ['aif', 'audio/aiff'],
  ['aiff', 'audio/aiff'],
  ['m4a', 'audio/mp4'],
  ['m4b', 'audio/mp4'],
  ['mka', 'audio/x-matroska'],
  ['mp4', 'video/mp4'],
  ['m4v', 'video/mp4'],
  ['mkv', 'video/x-matroska'],
  ['webm', 'video/webm'],
  ['ogv', 'video/ogg'],
  ['mov', 'video/quicktime'],
  ['3gp', 'video/3gpp'],
  ['3g2', 'video/3gpp2'],
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
  ['text', 'text/plain'],
  ['md', 'text/plain'],
  ['log', 'text/plain'],
  ['csv', 'text/plain'],
  ['vtt', 'text/vtt'],
]);

/** The media type with which a stored file is shown (R45); undefined if it is only downloaded. */
export function shownTypeOf(storedName: string): string | undefined {
  return shownTypes.get(extensionOf(storedName));
}

/** In lower case; empty if the name has none. */
function extensionOf(storedName: string): string {
  return (storedName.split('.').slice(1).at(-1) ?? '').toLowerCase();
}

/**
 * `Content-Disposition` with the file's name (RFC 6266). Old clients get the name
 * without special characters, because some of them decode `%` escapes in a quoted string.
 */
export function toDisposition(storedName: string, kind: 'attachment' | 'inline'): string {
  const plain = storedName.replaceAll(/[^ -~]|["%\\]/g, '_');
  // RFC 8187 §3.2.1 leaves fewer characters unescaped than `encodeURIComponent` does.
  const escape = (character: string): string =>
    `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  const extended = encodeURIComponent(storedName).replaceAll(/['()*]/g, escape);
  return `${kind}; filename="${plain}"; filename*=UTF-8''${extended}`;
}
