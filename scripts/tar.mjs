/** Archives whose bytes depend on nothing but the names and contents of the files in them. */

import { constants, gzipSync } from 'node:zlib';

const blockSize = 512;

/**
 * A compressed archive in the format ustar (POSIX.1-1988). Files belong to root and are from 1970.
 *
 * @param {Readonly<Record<string, Buffer>>} files by path, at most 100 bytes long
 */
export function toArchive(files) {
  const blocks = Object.entries(files)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, content]) => {
      const padding = Buffer.alloc((blockSize - (content.length % blockSize)) % blockSize);
      return [toHead(path, content.length), content, padding];
    });
  const end = Buffer.alloc(2 * blockSize);
  return gzipSync(Buffer.concat([...blocks, end]), { level: constants.Z_BEST_COMPRESSION });
}

function toHead(path, size) {
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long for an archive`);
  const head = Buffer.alloc(blockSize);
  const octal = (number, digits) => number.toString(8).padStart(digits, '0');
  head.write(path, 0);
  head.write(octal(0o644, 7), 100); // mode
  head.write(octal(0, 7), 108); // user
  head.write(octal(0, 7), 116); // group
  head.write(octal(size, 11), 124);
  head.write(octal(0, 11), 136); // time
  head.write(' '.repeat(8), 148); // the checksum counts as blanks
  head.write('0', 156); // a plain file
  head.write('ustar\u000000', 257);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${octal(sum, 6)}\u0000 `, 148);
  return head;
}
