/** Writes a multipart/form-data body as a stream, one part after the other (Spec §4.4 rule 3). */

import { randomBytes } from 'node:crypto';

export interface OutgoingPart {
  readonly name: string;
  readonly fileName: string;
  readonly contentType: string;
  readonly content: AsyncIterable<Buffer> | Iterable<Buffer>;
}

/** 192 random bits: no content holds it by chance, and it cannot be uploaded in advance. */
export function createBoundary(): string {
  return `inkwell-${randomBytes(24).toString('hex')}`;
}

/** Small pieces are joined up to this size, so that many small files do not make many writes. */
const pieceBytes = 64 * 1024;

/** The whole body. Takes each part when the one before it has been read. */
export async function* writeMultipart(
  boundary: string,
  parts: Iterable<OutgoingPart>,
): AsyncGenerator<Buffer, void, undefined> {
  let pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of toPieces(boundary, parts)) {
    pieces.push(piece);
    size += piece.length;
    if (size < pieceBytes) continue;
    yield* pieces;
    pieces = [];
    size = 0;
  }
  yield Buffer.concat(pieces, size);
}

async function* toPieces(
  boundary: string,
  parts: Iterable<OutgoingPart>,
): AsyncGenerator<Buffer, void, undefined> {
  for (const part of parts) {
    yield toHead(boundary, part);
    yield* part.content;
    yield lineEnd;
  }
  yield Buffer.from(`--${boundary}--\r\n`);
}

const lineEnd = Buffer.from('\r\n');

function toHead(boundary: string, { name, fileName, contentType }: OutgoingPart): Buffer {
  return Buffer.from(
    `--${boundary}\r\n` +
      `Content-Disposition: form-data; name="${escape(name)}"; filename="${escape(fileName)}"\r\n` +
      `Content-Type: ${contentType}\r\n\r\n`,
  );
}

/** The browsers' way (HTML, "multipart/form-data encoding algorithm"): raw UTF-8 otherwise. */
function escape(name: string): string {
  return name.replaceAll(/["\r\n]/g, (character) => encodeURIComponent(character));
}
