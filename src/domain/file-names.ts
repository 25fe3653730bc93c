/** Names and media types of stored files (Spec §4.4 rules 1, 2 and 4; R18). */

import { AppError } from '../errors.ts';

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
    throw new AppError(
      'invalid_multipart',
      `A file name is longer than ${fileNameBytesMax} bytes of UTF-8.`,
    );
  }
  // A copy: V8 keeps the whole header block alive for a slice of it, and this name is stored.
  return bytes.toString();
}

/** A name for a file that came without one (Spec §4.4 rule 2). `mediaType` is in lower case. */
export function createFileName(mediaType: string, createUuid: () => string): string {
  return `${createUuid()}.${extensionOfType.get(mediaType) ?? 'bin'}`;
}

/** The media type with which a stored file is served (Spec §4.4 rule 4). */
export function mediaTypeOf(storedName: string): string {
  const extension = storedName.slice(storedName.lastIndexOf('.') + 1);
  const known =
    extension.length < storedName.length && typeOfExtension.get(extension.toLowerCase());
  return known || 'application/octet-stream';
}

/**
 * `Content-Disposition` for a download under the file's name (RFC 6266). Old clients get the name
 * without special characters, because some of them decode `%` escapes in a quoted string.
 */
export function toDisposition(storedName: string): string {
  const plain = storedName.replaceAll(/[^ -~]|["%\\]/g, '_');
  // RFC 8187 §3.2.1 leaves fewer characters unescaped than `encodeURIComponent` does.
  const escape = (character: string): string =>
    `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  const extended = encodeURIComponent(storedName).replaceAll(/['()*]/g, escape);
  return `attachment; filename="${plain}"; filename*=UTF-8''${extended}`;
}
