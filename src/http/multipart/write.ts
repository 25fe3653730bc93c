/** Writes a multipart/form-data body as a stream, part by part (Spec §4.4 rule 3). */

import { randomBytes } from 'node:crypto';

interface OutgoingPart {
  readonly name: string;
  readonly fileName: string;
  readonly contentType: string;
  readonly content: AsyncIterable<Buffer> | Iterable<Buffer>;
}

/** 192 random bits: no content contains it by chance, and no client can predict it. */
export function createBoundary(): string {
  return `inkwell-${randomBytes(24).toString('hex')}`;
}

/** Small pieces are joined up to this size, so that many small files do not cause many writes. */
const pieceBytes = 64 * 1024;

/** The whole body. Each part is requested when the previous one was read. */
export async function* writeMultipart(
  boundary: string,
  parts: AsyncIterable<OutgoingPart> | Iterable<OutgoingPart>,
): AsyncGenerator<Buffer, void, undefined> {
  let pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of toPieces(boundary, parts)) {
    pieces.push(piece);
    size += piece.length;
    if (size < pieceBytes) continue;
    // A large piece comes last, and is not copied.
    yield* piece.length < pieceBytes ? [Buffer.concat(pieces, size)] : pieces;
    pieces = [];
    size = 0;
  }
  yield Buffer.concat(pieces, size);
}

async function* toPieces(
  boundary: string,
  parts: AsyncIterable<OutgoingPart> | Iterable<OutgoingPart>,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const part of parts) {
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

/** Escapes as browsers do (HTML, "multipart/form-data encoding algorithm"); else raw UTF-8. */
function escape(name: string): string {
  return name.replaceAll(/["\r\n]/g, (character) => encodeURIComponent(character));
}
